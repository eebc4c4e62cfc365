package node

import (
	"fmt"
	"strings"
)

// Describe says, a line for each way, how the room does collectives of host memory, and
// from how many bytes of a member's payload on.
func (r *Room) Describe() string {
	direct := directFrom
	if r.crowded {
		direct = directFromCrowded
	}
	var b strings.Builder
	for _, way := range []struct {
		from int
		doc  string
	}{
		{0, fmt.Sprintf("in one step, up to %d bytes beside its number, then by near rings", smallSize)},
		{pieceLeast + 1, fmt.Sprintf("in several steps, by near rings of %d bytes", r.near.size)},
		{farFrom, fmt.Sprintf("in several steps, by far rings of %d bytes, if there is memory for them", r.far.size)},
		{direct, "in place, if the vectors of all members are from Alloc"},
		{r.directMost() + 1, "allreduce: each member combines a share"},
	} {
		fmt.Fprintf(&b, "%d-: %s\n", way.from, way.doc)
	}
	return b.String()
}
