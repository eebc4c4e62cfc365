package network

import "math/bits"

// CPUs are a set of processors, a bit for each.
type CPUs []byte

func (s CPUs) count() int {
	n := 0
	for _, b := range s {
		n += bits.OnesCount8(b)
	}
	return n
}

func (s CPUs) or(t CPUs) CPUs {
	u := make(CPUs, max(len(s), len(t)))
	copy(u, s)
	for i, b := range t {
		u[i] |= b
	}
	return u
}
