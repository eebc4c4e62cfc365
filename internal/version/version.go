// Package version says which version the programs are, and what they are built from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Number is the version of all programs and libraries, and is written here alone: the Makefile
// reads this line. Launcher and agents of one job have the same.
const Number = "0.1.0"

// commit is the commit that make has built a program from, "" if go build has: then the binary's
// build information has it.
var commit string

// Text is what -version of a program prints.
func Text(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)", program, Build(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Build is the version with its commit.
func Build() string {
	if commit != "" {
		return Number + ", commit " + commit
	}
	return Number + ", commit " + builtFrom()
}

// builtFrom returns the commit in the binary's build information.
func builtFrom() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "unknown"
	}
	revision, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return revision + changed
}
