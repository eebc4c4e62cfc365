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

// of returns what is remembered of p, in the step after steps of them, at first only zeros.
func (s states) of(p ddp.BucketPart, steps int) (*state, error) {
	x, err := s.get(p.Name, len(p.Grad))
	if err != nil {
		return nil, err
	}
	if x.steps == steps+1 {
		return nil, sameName(p.Name)
	}
	x.steps = steps + 1
	return x, nil
}

// get returns what is remembered of the parameter of that name, of n numbers.
func (s states) get(name string, n int) (*state, error) {
	x := s[name]
	if x == nil {
		x = &state{errors: make([]float32, n)}
		s[name] = x
	}
	if len(x.errors) != n {
		return nil, fmt.Errorf("parameter %q has %d numbers, and had %d: want a Hook for each DDP", name, n, len(x.errors))
	}
	return x, nil
}

// begin returns what is remembered of these parameters, before the first step: zeros.
func (s states) begin(params []*ddp.Param) ([]*state, error) {
	var all []*state
	for _, p := range params {
		x, err := s.get(p.Name, len(p.Data))
		if err != nil {
			return nil, err
		}
		if slices.Contains(all, x) {
			return nil, sameName(p.Name)
		}
		all = append(all, x)
	}
	return all, nil
}

func sameName(name string) error {
	return fmt.Errorf("two parameters are named %q: want names that differ", name)
}

// resize returns s, or memory with room for more, with n elements of any values.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
