package comm

import "math/bits"

// A cpuset is a set of processors, one bit each.
type cpuset []byte

func (s cpuset) count() int {
	n := 0
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

func (s cpuset) or(t cpuset) cpuset {
	u := make(cpuset, max(len(s), len(t)))
	copy(u, s)
	for i, b := range t {
		u[i] |= b
	}
	return u
}
