package call

import (
	"errors"
	"fmt"

	"gompi/internal/mem"
)

// An Op is the operator of a reduction.
type Op struct {
	Kind mem.Op
	// Program states that Func is a function of a C program, and must run on a thread of the
	// program.
	Program bool
	// Func combines, instead of Kind's kernel: acc = acc op in, element by element. A Func of
	// mem.Custom must be associative; operands keep rank order, so commutativity is not needed.
	Func func(acc, in mem.Buffer)
}

// Base returns the operator that ranks combine by: Avg is a sum until Finish.
func (op Op) Base() Op {
	op.Kind = op.Kind.Base()
	return op
}

// Finish makes the combined elements b the result of op over n ranks.
func (op Op) Finish(b mem.Buffer, n int) error {
	if op.Kind != mem.Avg || b.Len() == 0 || n == 1 { // alone, a rank may have device memory
		return nil
	}
	return mem.Divide(b, n)
}

// Combine stores a op b into dst, which is a or overlaps neither.
func (op Op) Combine(dst, a, b mem.Buffer) error {
	switch {
	case op.Func == nil:
		return mem.Reduce(op.Kind.Base(), dst, a, b)
	case dst.Len() == 0: // a rank's share of few elements
		return nil
	}
	if !mem.Same(dst, a) {
		if err := mem.Copy(dst, a); err != nil {
			return err
		}
	}
	op.Func(dst, b)
	return nil
}

// defined reports whether op can combine elements of a type.
func (op Op) defined(t mem.Type) bool {
	if op.Kind == mem.Custom {
		return op.Func != nil
	}
	return op.Kind.Defined(t)
}

// refusal returns the reason why op is not defined.
func (op Op) refusal(t mem.Type) error {
	if op.Kind == mem.Custom {
		return errors.New("no function to combine with")
	}
	if op.Kind == mem.Avg && t.IsInteger() {
		return fmt.Errorf("operator avg is not defined for %v, of which the sum may wrap: want floating-point numbers, or a sum in a wider type", t)
	}
	return fmt.Errorf("operator %v is not defined for %v", op.Kind, t)
}
