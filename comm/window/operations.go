package window

import (
	"fmt"

	"gompi/comm"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
)

// check returns an error for an invalid place or buffer.
func (w *Window) check(op string, at int, b comm.Buffer) error {
	switch {
	case w.typ != mem.NoType && b.Type() != w.typ:
		return fmt.Errorf("%s: %w: elements of %v in a window of %v", op, comm.ErrArgument, b.Type(), w.typ)
	case uint(at) > w.most:
		return fmt.Errorf("%s: %w: place %d: want 0 to %d", op, comm.ErrArgument, at, w.most)
	}
	return nil
}

// Put stores b in the memory of rank to, from element at on (MPI_Put). b may be memory of a device,
// or have a Layout; at the target the elements are contiguous. An operation with comm.ProcNull does
// nothing.
func (w *Window) Put(to, at int, b comm.Buffer) error {
	if to == comm.ProcNull {
		return nil
	}
	if err := w.check("put", at, b); err != nil {
		return err
	}
	return w.w.PutRun(to, at*w.size, b)
}

// Get stores the elements of rank from, from element at on, in b (MPI_Get).
func (w *Window) Get(from, at int, b comm.Buffer) error {
	if from == comm.ProcNull {
		return nil
	}
	if err := w.check("get", at, b); err != nil {
		return err
	}
	return w.w.GetRun(from, at*w.size, b)
}

// Accumulate combines b with the elements of rank to, from element at on (MPI_Accumulate). op is
// Replace, or an operator of comm that is defined for the elements, except Avg.
func (w *Window) Accumulate(to, at int, b comm.Buffer, op comm.Op) error {
	return w.accumulate("accumulate", to, at, b, op, nil)
}

func (w *Window) accumulate(name string, to, at int, b comm.Buffer, op comm.Op, keep rma.Keep) error {
	if to == comm.ProcNull {
		return nil
	}
	if err := w.check(name, at, b); err != nil {
		return err
	}
	return w.w.Accumulate(rma.Run(to, at*w.size, b.Size()), b, rma.Of(op, b.Type()), keep)
}

// GetAccumulate is Accumulate that also stores the previous elements in result
// (MPI_Get_accumulate). With NoOp, b is ignored.
func (w *Window) GetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) error {
	return w.getAccumulate("getaccumulate", to, at, b, result, op, nil)
}

func (w *Window) getAccumulate(name string, to, at int, b, result comm.Buffer, op comm.Op, keep rma.Keep) error {
	if to == comm.ProcNull {
		return nil
	}
	if op == NoOp {
		b = result
	}
	if err := w.check(name, at, b); err != nil {
		return err
	}
	if result.Size() != b.Size() {
		return fmt.Errorf("%s: %w: a result of %d bytes: want %d", name, comm.ErrArgument, result.Size(), b.Size())
	}
	return w.w.GetAccumulate(rma.Run(to, at*w.size, b.Size()), b, result, rma.Of(op, b.Type()), keep)
}

// FetchAndOp is GetAccumulate of one element, which is faster (MPI_Fetch_and_op). Both buffers are
// host memory.
func (w *Window) FetchAndOp(to, at int, b, result comm.Buffer, op comm.Op) error {
	if to == comm.ProcNull {
		return nil
	}
	if err := w.check("fetchandop", at, result); err != nil {
		return err
	}
	if result.Len() != 1 || op != NoOp && (b.Len() != 1 || b.Type() != result.Type()) {
		return fmt.Errorf("fetchandop: %w: %d and %d elements: want one, of a type", comm.ErrArgument, b.Len(),
			result.Len())
	}
	return w.w.FetchAndOp(to, at*w.size, b, result, rma.Of(op, result.Type()))
}

// CompareAndSwap stores the element b at element at of rank to, if that element has the same bytes
// as want, and stores the previous element in result (MPI_Compare_and_swap). All three are host
// memory of one element.
func (w *Window) CompareAndSwap(to, at int, b, want, result comm.Buffer) error {
	if to == comm.ProcNull {
		return nil
	}
	for _, x := range []comm.Buffer{b, want, result} {
		if err := w.check("compareandswap", at, x); err != nil {
			return err
		}
		if x.Len() != 1 || x.Type() != b.Type() || !x.IsHost() {
			return fmt.Errorf("compareandswap: %w: %d elements: want one, in host memory", comm.ErrArgument, x.Len())
		}
	}
	return w.w.CompareAndSwap(to, at*w.size, b, want, result, rma.Of(Replace, b.Type()))
}

// Rput is Put with a Request, which is complete when b may be used again (MPI_Rput). At the target
// the elements are stored after a Flush.
func (w *Window) Rput(to, at int, b comm.Buffer) (comm.Request, error) {
	return w.requested(func(keep rma.Keep) error {
		if to == comm.ProcNull {
			return nil
		}
		if err := w.check("rput", at, b); err != nil {
			return err
		}
		return w.w.Put(rma.Run(to, at*w.size, b.Size()), b, keep)
	})
}

// Rget is Get with a Request, which is complete when b has the elements (MPI_Rget).
func (w *Window) Rget(from, at int, b comm.Buffer) (comm.Request, error) {
	return w.requested(func(keep rma.Keep) error {
		if from == comm.ProcNull {
			return nil
		}
		if err := w.check("rget", at, b); err != nil {
			return err
		}
		return w.w.Get(rma.Run(from, at*w.size, b.Size()), b, keep)
	})
}

// Raccumulate is Accumulate with a Request, as in Rput (MPI_Raccumulate).
func (w *Window) Raccumulate(to, at int, b comm.Buffer, op comm.Op) (comm.Request, error) {
	return w.requested(func(keep rma.Keep) error { return w.accumulate("raccumulate", to, at, b, op, keep) })
}

// RgetAccumulate is GetAccumulate with a Request, which is complete when result has the elements
// (MPI_Rget_accumulate).
func (w *Window) RgetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) (comm.Request, error) {
	return w.requested(func(keep rma.Keep) error {
		return w.getAccumulate("rgetaccumulate", to, at, b, result, op, keep)
	})
}

// requested starts an operation, and returns a request that completes with all of start's kept
// parts.
func (w *Window) requested(start func(keep rma.Keep) error) (comm.Request, error) {
	r, err := w.w.Requested(start)
	return comm.Request(r), err
}
