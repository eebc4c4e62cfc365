package window

import (
	"fmt"

	"gompi/comm"
	"gompi/internal/core/layout"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
)

// A View is a window through a Layout: its operations are the window's, on the elements of the
// Layout. Their synchronization is the Window's. A View is constant, and several goroutines may use
// it.
type View struct {
	w     *Window
	typ   comm.Type
	laid  bool // else the elements are contiguous, as many as at the origin
	at    layout.Layout
	again bool // the layout has an element twice
}

// Lay returns w through l. At the target, the elements of the View's Put, Get and accumulates are
// l's, in its order, counted from the operation's place. For example, column 3 of the target's
// matrix of rows x cols:
//
//	column, err := comm.Vector(rows, 1, cols)
//	view, err := window.Lay[float64](w, column)
//	err = view.Put(to, 3, comm.Of(x)) // stores rows elements
//
// T is the type of the window's elements or, in a dynamic window, whose places are addresses, of
// the operations. Lay allocates, so make a View once. It is not collective, and costs nothing at
// the target. Elements that l has twice can only be got.
//
// Memory that this rank shares is accessed in place. Copies by the kernel take a system call for
// 128 runs, and requests to the owner a message for as many.
func Lay[T comm.Scalar](w *Window, l comm.Layout) (*View, error) {
	t := mem.TypeOf[T]()
	if w.typ != mem.NoType && w.typ != t {
		return nil, fmt.Errorf("window: %w: a layout of elements of %v in a window of %v", comm.ErrArgument, t, w.typ)
	}
	runs, again := (*layout.Elements)(&l).Runs()
	return &View{w: w, typ: t, laid: true, at: runs.Scaled(t.Size()), again: again}, nil
}

// target returns the target of an operation on elements like b's. stores is false for a mere get.
func (v *View) target(op string, to, at int, b comm.Buffer, stores bool) (t rma.Target, err error) {
	if err := v.w.check(op, at, b); err != nil {
		return t, err
	}
	if !v.laid {
		return rma.Run(to, at*v.w.size, b.Size()), nil
	}
	switch named := v.at.Size() / v.typ.Size(); {
	case b.Type() != v.typ:
		err = fmt.Errorf("%s: %w: elements of %v for a layout of %v", op, comm.ErrArgument, b.Type(), v.typ)
	case b.Len() != named:
		err = fmt.Errorf("%s: %w: %d elements for a layout of %d: want the same number", op, comm.ErrArgument,
			b.Len(), named)
	case stores && v.again:
		err = fmt.Errorf("%s: %w: a layout that names an element twice: want one to store to, or Get", op,
			comm.ErrArgument)
	}
	return rma.Target{Rank: to, At: at * v.w.size, Layout: v.at}, err
}

// Put is Window.Put through the Layout. b has as many elements as the Layout.
func (v *View) Put(to, at int, b comm.Buffer) error { return v.put("put", to, at, b, nil) }

func (v *View) put(op string, to, at int, b comm.Buffer, keep rma.Keep) error {
	if to == comm.ProcNull {
		return nil
	}
	t, err := v.target(op, to, at, b, true)
	if err != nil {
		return err
	}
	return v.w.w.Put(t, b, keep)
}

// Get is Window.Get through the Layout. b has as many elements as the Layout.
func (v *View) Get(from, at int, b comm.Buffer) error { return v.get("get", from, at, b, nil) }

func (v *View) get(op string, from, at int, b comm.Buffer, keep rma.Keep) error {
	if from == comm.ProcNull {
		return nil
	}
	t, err := v.target(op, from, at, b, false)
	if err != nil {
		return err
	}
	return v.w.w.Get(t, b, keep)
}

// Accumulate is Window.Accumulate through the Layout. b has as many elements as the Layout.
func (v *View) Accumulate(to, at int, b comm.Buffer, op comm.Op) error {
	return v.accumulate("accumulate", to, at, b, op, nil)
}

func (v *View) accumulate(name string, to, at int, b comm.Buffer, op comm.Op, keep rma.Keep) error {
	if to == comm.ProcNull {
		return nil
	}
	t, err := v.target(name, to, at, b, true)
	if err != nil {
		return err
	}
	return v.w.w.Accumulate(t, b, rma.Of(op, b.Type()), keep)
}

// GetAccumulate is Window.GetAccumulate through the Layout. b and result have as many elements as
// the Layout.
func (v *View) GetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) error {
	return v.getAccumulate("getaccumulate", to, at, b, result, op, nil)
}

func (v *View) getAccumulate(name string, to, at int, b, result comm.Buffer, op comm.Op, keep rma.Keep) error {
	if to == comm.ProcNull {
		return nil
	}
	if op == NoOp {
		b = result
	}
	t, err := v.target(name, to, at, b, op != NoOp)
	if err != nil {
		return err
	}
	if result.Size() != b.Size() {
		return fmt.Errorf("%s: %w: a result of %d bytes: want %d", name, comm.ErrArgument, result.Size(), b.Size())
	}
	return v.w.w.GetAccumulate(t, b, result, rma.Of(op, b.Type()), keep)
}

// Rput is Window.Rput through the Layout.
func (v *View) Rput(to, at int, b comm.Buffer) (comm.Request, error) {
	return v.w.requested(func(keep rma.Keep) error { return v.put("rput", to, at, b, keep) })
}

// Rget is Window.Rget through the Layout.
func (v *View) Rget(from, at int, b comm.Buffer) (comm.Request, error) {
	return v.w.requested(func(keep rma.Keep) error { return v.get("rget", from, at, b, keep) })
}

// Raccumulate is Window.Raccumulate through the Layout.
func (v *View) Raccumulate(to, at int, b comm.Buffer, op comm.Op) (comm.Request, error) {
	return v.w.requested(func(keep rma.Keep) error { return v.accumulate("raccumulate", to, at, b, op, keep) })
}

// RgetAccumulate is Window.RgetAccumulate through the Layout.
func (v *View) RgetAccumulate(to, at int, b, result comm.Buffer, op comm.Op) (comm.Request, error) {
	return v.w.requested(func(keep rma.Keep) error {
		return v.getAccumulate("rgetaccumulate", to, at, b, result, op, keep)
	})
}

// requested starts an operation, and returns a request that completes with all of start's kept
// parts.
func (w *Window) requested(start func(keep rma.Keep) error) (comm.Request, error) {
	r, err := w.w.Requested(start)
	return comm.Request(r), err
}
