//go:build race

package measure

import "slices"

// The receives of bw have one buffer, as those of OSU's benchmark, which the race detector reports.
func init() { names = slices.DeleteFunc(names, func(name string) bool { return name == "bw" }) }
