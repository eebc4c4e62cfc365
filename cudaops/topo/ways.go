package topo

import (
	"fmt"
	"slices"
)

// Ways returns the kinds of connections from device i to the others, each once, in nvidia-smi's
// abbreviations: NVLinks, or else the PCI level where the devices meet. Without known links, the
// result is empty.
func (h *Host) Ways(i int) []string {
	if len(h.Links) == 0 {
		return nil
	}
	var ways []string
	for j, l := range h.Links[i] {
		if i != j && !slices.Contains(ways, l.way()) {
			ways = append(ways, l.way())
		}
	}
	return ways
}

func (l Link) way() string {
	switch {
	case l.NVLinks > 0:
		return fmt.Sprintf("NV%d", l.NVLinks)
	case l.Level == "":
		return "?"
	}
	return string(l.Level)
}
