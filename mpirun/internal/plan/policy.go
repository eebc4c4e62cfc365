package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// An Order says in which order ranks take slots.
type Order uint8

// The orders.
const (
	BySlot Order = iota // fill a host before taking the next
	ByNode              // deal ranks out one by one
)

// String returns the order as -map-by spells it.
func (o Order) String() string {
	if o == ByNode {
		return "node"
	}
	return "slot"
}

// A BindTo says what a rank is bound to.
type BindTo uint8

// The bindings.
const (
	BindAuto BindTo = iota // disjoint shares of the cores if there is one for each rank, else none
	BindNone               // nothing
	BindCore               // one core each
	BindNuma               // the cores of one memory domain
)

// String returns the binding as -bind-to spells it.
func (b BindTo) String() string {
	switch b {
	case BindNone:
		return "none"
	case BindCore:
		return "core"
	case BindNuma:
		return "numa"
	}
	return "auto"
}

// SetMapBy applies the value of -map-by: slot, node or ppr:N:node, each with
// mpirun's :OVERSUBSCRIBE or :NOOVERSUBSCRIBE after it or alone. Capitals do
// not matter. An N that contradicts p.PerNode is an error, so set what -N says
// first. p is unchanged after an error.
func (p *Policy) SetMapBy(s string) error {
	wrong := func() error {
		return fmt.Errorf("-map-by %q: want slot, node or ppr:N:node", s)
	}
	fields := strings.Split(strings.ToLower(s), ":")
	next := *p
	switch fields[0] {
	case "slot":
		next.Order, fields = BySlot, fields[1:]
	case "node":
		next.Order, fields = ByNode, fields[1:]
	case "ppr":
		if len(fields) < 3 || fields[2] != "node" {
			return wrong()
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil || n < 1 || n > MaxRanks {
			return fmt.Errorf("-map-by %q: %q ranks per node: want a number from 1 to %d", s, fields[1], MaxRanks)
		}
		if p.PerNode != 0 && p.PerNode != n {
			return fmt.Errorf("-map-by %q and -N %d: want one of them, or the same number in both", s, p.PerNode)
		}
		next.Order, next.PerNode, fields = BySlot, n, fields[3:]
	case "":
		if fields = fields[1:]; len(fields) == 0 {
			return wrong()
		}
	default:
		return wrong()
	}
	for _, modifier := range fields {
		switch modifier {
		case "oversubscribe":
			next.NoOversubscribe = false
		case "nooversubscribe":
			next.NoOversubscribe = true
		default:
			return fmt.Errorf("-map-by %q: %q: want oversubscribe or nooversubscribe after the colon", s, modifier)
		}
	}
	*p = next
	return nil
}

// ParseBindTo reads the value of -bind-to: none, core, numa or auto, in any
// capitals. The words that mpirun allows after a colon to make binding more
// lenient (overload-allowed, if-supported) change nothing: it is, here.
func ParseBindTo(s string) (BindTo, error) {
	word, modifiers, _ := strings.Cut(strings.ToLower(s), ":")
	switch modifiers {
	case "", "overload-allowed", "if-supported":
	default:
		return 0, fmt.Errorf("-bind-to %q: %q: want none, core or numa alone", s, modifiers)
	}
	for _, b := range []BindTo{BindAuto, BindNone, BindCore, BindNuma} {
		if word == b.String() {
			return b, nil
		}
	}
	return 0, fmt.Errorf("-bind-to %q: want none, core or numa", s)
}
