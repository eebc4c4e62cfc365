package randprog

import (
	"fmt"
	"slices"
	"strings"

	"gompi/comm"
)

// A Program is a list of units. All ranks have the same one.
type Program struct {
	Seed  uint64
	Ranks int
	units []unit
	// members are the world ranks of each communicator, in its order; the first is
	// the world.
	members [][]int
}

// A unit is one step of a program.
type unit interface {
	head() *header
	String() string
	// run does the part of this rank; c is nil if it is not in the unit's communicator.
	run(r *runner, c *comm.Comm) error
}

// A header holds the fields that all units have.
type header struct {
	id   int
	on   int    // which communicator
	seed uint64 // of contents and of the unit's other draws
}

func (h *header) head() *header { return h }

// Units returns the numbers of p's units.
func (p *Program) Units() []int {
	ids := make([]int, len(p.units))
	for i, u := range p.units {
		ids[i] = u.head().id
	}
	return ids
}

// Only returns p with only the units of the given numbers, and without units whose communicator is
// then not made.
func (p *Program) Only(ids []int) *Program {
	q := *p
	q.units = nil
	made := map[int]bool{0: true}
	for _, u := range p.units {
		if !slices.Contains(ids, u.head().id) || !made[u.head().on] {
			continue
		}
		if all, ok := u.(*parallel); ok {
			some := *all
			some.units = slices.DeleteFunc(slices.Clone(all.units), func(u unit) bool { return !made[u.head().on] })
			u = &some
		}
		if m, ok := u.(*makeComm); ok {
			made[m.makes] = true
		}
		q.units = append(q.units, u)
	}
	return &q
}

// String lists the units, one to a line.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "program %d of %d ranks\n", p.Seed, p.Ranks)
	for _, u := range p.units {
		fmt.Fprintf(&b, "%4d on %d: %v\n", u.head().id, u.head().on, u)
	}
	return b.String()
}
