package topo

import (
	"fmt"
	"slices"
)

// Ways returns how device i reaches the others, each way once, as nvidia-smi abbreviates them: its
// NVLinks, or else where on PCI the devices meet. There are none where nothing is known.
func (h *Host) Ways(i int) []string {
	if h.Links == nil {
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
