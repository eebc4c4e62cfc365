package seg

import (
	"fmt"
	"math"
)

// A Limit is the memory that a machine or control group still grants.
type Limit struct {
	Left int64  // bytes that may still be taken
	Of   int64  // bytes in all
	By   string // "this machine", or the control group
}

// unlimited is the Limit if none is known.
var unlimited = Limit{Left: math.MaxInt64, Of: math.MaxInt64, By: "a machine that does not report its memory"}

// String returns the free memory, the total and its owner: "1.50 GiB of the 4.00 GiB of this
// machine".
func (l Limit) String() string {
	return fmt.Sprintf("%s of the %s of %s", Amount(l.Left), Amount(l.Of), l.By)
}

// least returns the Limit that leaves less.
func (l Limit) least(m Limit) Limit {
	if m.Left < l.Left {
		return m
	}
	return l
}

// Amount shows n in the largest unit that it fills.
func Amount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
