package compress

import (
	"fmt"
	"slices"

	"gompi/comm/ddp"
)

// states are what a Hook remembers of parameters, by their names: those stay when the buckets are
// made anew.
type states map[string]*state

// A state is what a Hook remembers of one parameter.
type state struct {
	errors []float32 // of each number, what has not been sent yet
	steps  int       // done after the last one that asked for it
	matrix *matrix   // of PowerSGD
}

// of returns what is remembered of p, in the step after so many, at first nothing but zeros.
func (s states) of(p ddp.BucketPart, steps int) (*state, error) {
	x := s[p.Name]
	switch {
	case x == nil:
		x = &state{errors: make([]float32, len(p.Grad))}
		s[p.Name] = x
	case len(x.errors) != len(p.Grad):
		return nil, fmt.Errorf("parameter %q has %d numbers, and had %d: want a Hook for each DDP",
			p.Name, len(p.Grad), len(x.errors))
	case x.steps == steps+1:
		return nil, fmt.Errorf("two parameters are named %q: want names that differ", p.Name)
	}
	x.steps = steps + 1
	return x, nil
}

// resize returns s, or memory with room for more, with n elements of any values.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
