package compress

import (
	"fmt"
	"slices"

	"gompi/comm/ddp"
)

// states are a Hook's memory of parameters, by names, which stay the same when the buckets are made
// anew.
type states map[string]*state

// A state is a Hook's memory of one parameter.
type state struct {
	errors []float32 // for each number, the unsent part
	steps  int       // steps done after the last use
	matrix *matrix   // for PowerSGD
}

// of returns the state of p for the step after steps others, at first zeros.
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

// get returns the state of the parameter with a name and n numbers.
func (s states) get(name string, n int) (*state, error) {
	x := s[name]
	if x == nil {
		x = &state{errors: make([]float32, n)}
		s[name] = x
	}
	if len(x.errors) != n {
		return nil, fmt.Errorf("parameter %q has %d numbers, and had %d: want a Hook for each DDP", name, n,
			len(x.errors))
	}
	return x, nil
}

// begin returns the states of these parameters before the first step: zeros.
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

// resize returns s, or larger memory, with n elements of any values.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
