package mem

import "fmt"

// An Op is a reduction operator. It travels in message headers, so the values are part of the wire
// format.
type Op uint8

// The operators. Op.Defined reports the Types of each.
//
//c:const GOMPI_OP_
const (
	NoOp Op = iota
	Sum
	Prod
	Min
	Max
	Avg // the sum of the operands, divided by their number; not of integers, whose sum may wrap
	LAnd
	LOr
	LXor
	BAnd
	BOr
	BXor
	MinLoc
	MaxLoc
	Custom // a function of the user, combined in rank order
	numOps
)

var opNames = [numOps]string{
	"none", "sum", "prod", "min", "max", "avg", "land", "lor", "lxor", "band", "bor", "bxor", "minloc",
	"maxloc", "custom",
}

func (op Op) String() string {
	if op >= numOps {
		return fmt.Sprintf("op(%d)", uint8(op))
	}
	return opNames[op]
}

// ParseOp returns the built-in Op that String names.
func ParseOp(s string) (Op, error) {
	for op := Sum; op < Custom; op++ {
		if opNames[op] == s {
			return op, nil
		}
	}
	return NoOp, fmt.Errorf("unknown operator %q: want sum, prod, min, max, avg, land, lor, lxor, band, bor, bxor, minloc or maxloc", s)
}
