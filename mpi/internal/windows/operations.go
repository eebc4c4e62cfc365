package windows

import (
	"errors"

	"gompi/internal/core"
	"gompi/internal/core/rma"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
	"gompi/mpi/internal/typemap"
)

// data is elements of a datatype, at the origin.
type data struct {
	buf abi.Addr
	n   int
	t   *dtypes.Datatype
}

func (d data) buffer() mem.Buffer { return d.t.Buffer(d.buf, d.n) }

// place is elements of a datatype, at the target.
type place struct {
	rank, at int
	n        int
	t        *dtypes.Datatype
}

// access checks the arguments of an operation, and returns its target. nothing states that there is
// nothing to do.
func (w *Win) access(p place, origins ...data) (t rma.Target, nothing bool, err error) {
	if err := w.Check(); err != nil {
		return t, false, err
	}
	for _, d := range origins {
		if err := dtypes.Check(d.n, d.t); err != nil {
			return t, false, err
		}
	}
	if err := dtypes.Check(p.n, p.t); err != nil {
		return t, false, err
	}
	if p.rank == abi.ProcNull {
		return t, true, nil
	}
	if err := w.checkRank(p.rank); err != nil {
		return t, false, err
	}
	if err := w.mayAccess(p.rank); err != nil {
		return t, false, err
	}
	at, ok := typemap.Times(w.w.Unit(p.rank), p.at)
	if !ok {
		return t, false, errs.New(errs.RMARange,
			"displacement %d, counted in %d bytes, of the memory of rank %d: want one of its %d bytes",
			p.at, w.w.Unit(p.rank), p.rank, w.w.Size(p.rank))
	}
	t = rma.Target{Rank: p.rank, At: at, Layout: p.t.Layout(p.n)}
	lo, hi := t.Layout.Bounds()
	if n := t.Layout.Size(); n > 0 && w.flavor != flavorDynamic && (t.At+lo < 0 || t.At+hi > w.w.Size(p.rank)) {
		return t, false, errs.New(errs.RMARange, "bytes %d to %d of the memory of rank %d: want them inside its %d",
			t.At+lo, t.At+hi, p.rank, w.w.Size(p.rank))
	}
	return t, p.n*p.t.Size() == 0, nil
}

// inRange adds the class to err, if the error is a target that was not attached.
func inRange(err error) error {
	if errors.Is(err, rma.ErrRange) {
		return &errs.Error{Class: errs.RMARange, Cause: err}
	}
	return err
}

// inOneRun returns the place of contiguous elements at the target and their buffer here, if the
// arguments are valid: the most frequent case. Such an operation allocates nothing.
func (w *Win) inOneRun(d data, p place) (at int, b mem.Buffer, ok bool) {
	if w == nil || p.rank < 0 || p.rank >= len(w.parts) || dtypes.Check(d.n, d.t) != nil ||
		dtypes.Check(p.n, p.t) != nil || w.mayAccess(p.rank) != nil {
		return 0, b, false
	}
	off, dense := p.t.Contiguous(p.n)
	at, ok = typemap.Times(w.w.Unit(p.rank), p.at)
	if !dense || !ok {
		return 0, b, false
	}
	b, ok = d.t.Dense(d.buf, d.n)
	at += off
	return at, b, ok && b.Size() == p.n*p.t.Size() && b.Size() > 0 && at >= 0 && b.Size() <= w.w.Size(p.rank)-at
}

func Put(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype, w *Win) error {
	from, to := data{buf, n, t}, place{rank, at, count, u}
	if at, b, ok := w.inOneRun(from, to); ok {
		return w.w.PutRun(rank, at, b)
	}
	return w.put(from, to, nil)
}

func (w *Win) put(from data, to place, keep rma.Keep) error {
	t, nothing, err := w.access(to, from)
	if nothing || err != nil {
		return err
	}
	return inRange(w.w.Put(t, from.buffer(), keep))
}

func Get(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype, w *Win) error {
	into, from := data{buf, n, t}, place{rank, at, count, u}
	if at, b, ok := w.inOneRun(into, from); ok {
		return w.w.GetRun(rank, at, b)
	}
	return w.get(into, from, nil)
}

func (w *Win) get(into data, from place, keep rma.Keep) error {
	t, nothing, err := w.access(from, into)
	if nothing || err != nil {
		return err
	}
	return inRange(w.w.Get(t, into.buffer(), keep))
}

func Accumulate(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype, o *dtypes.Op,
	w *Win) error {
	return w.accumulate(data{buf, n, t}, place{rank, at, count, u}, o, nil)
}

func (w *Win) accumulate(from data, to place, o *dtypes.Op, keep rma.Keep) error {
	t, nothing, err := w.access(to, from)
	if nothing || err != nil {
		return err
	}
	how, err := howOf(o, to.t)
	if err != nil {
		return err
	}
	return inRange(w.w.Accumulate(t, from.buffer(), how, keep))
}

func GetAccumulate(buf abi.Addr, n int, t *dtypes.Datatype, result abi.Addr, m int, v *dtypes.Datatype, rank, at,
	count int, u *dtypes.Datatype, o *dtypes.Op, w *Win) error {
	return w.getAccumulate(data{buf, n, t}, data{result, m, v}, place{rank, at, count, u}, o, nil)
}

func (w *Win) getAccumulate(from, into data, to place, o *dtypes.Op, keep rma.Keep) error {
	t, nothing, err := w.access(to, into)
	if nothing || err != nil {
		return err
	}
	how, err := howOf(o, to.t)
	if err != nil {
		return err
	}
	var b mem.Buffer
	if how.Op != rma.Fetch { // which ignores its operand
		if err := dtypes.Check(from.n, from.t); err != nil {
			return err
		}
		b = from.buffer()
	}
	return inRange(w.w.GetAccumulate(t, b, into.buffer(), how, keep))
}

func FetchAndOp(buf, result abi.Addr, t *dtypes.Datatype, rank, at int, o *dtypes.Op, w *Win) error {
	into, from := data{result, 1, t}, place{rank, at, 1, t}
	if at, b, ok := w.inOneRun(into, from); ok && t.Basic() != nil && buf != 0 {
		if how, err := howOf(o, t); err == nil && how.Size == b.Size() {
			return w.w.FetchAndOp(rank, at, buf.Buffer(how.Size), b, how)
		}
	}
	return w.getAccumulate(data{buf, 1, t}, into, from, o, nil)
}

func CompareAndSwap(buf, compare, result abi.Addr, t *dtypes.Datatype, rank, at int, w *Win) error {
	target, nothing, err := w.access(place{rank, at, 1, t})
	if nothing || err != nil {
		return err
	}
	b := t.Basic()
	if b == nil || t.Size() > 8 || b.Class == typemap.Float || b.Class == typemap.Complex || b.Class == typemap.Pair {
		return errs.New(errs.Type, "the datatype is not one of an integer, a byte or a logical value")
	}
	n := t.Size()
	how := rma.How{Op: rma.Replace, Type: b.Mem, Size: n}
	return inRange(w.w.CompareAndSwap(rank, target.At, buf.Buffer(n), compare.Buffer(n), result.Buffer(n), how))
}

// howOf returns how an operator combines a datatype whose elements are of one predefined type.
func howOf(o *dtypes.Op, t *dtypes.Datatype) (rma.How, error) {
	switch {
	case o == nil || !o.IsPredefined():
		return rma.How{}, errs.New(errs.Op, "the operator is not a predefined one")
	case t == nil:
		return rma.How{}, errs.New(errs.Type, "the datatype is not valid")
	}
	b := elementOf(t.Type)
	var one *dtypes.Datatype
	if b != nil {
		one = dtypes.Registry.Find(abi.Handle(b.ID))
	}
	if one == nil {
		return rma.How{}, errs.New(errs.Type, "the elements of the datatype are not all of one predefined type")
	}
	how := rma.How{Type: b.Mem, Size: one.Size(), Code: uint64(o.Handle)<<32 | uint64(one.Handle)}
	switch o.Handle {
	case abi.OpReplace:
		how.Op = rma.Replace
		return how, nil
	case abi.OpNothing:
		how.Op = rma.Fetch
		return how, nil
	}
	if err := dtypes.CheckOp(o, one); err != nil {
		return rma.How{}, err
	}
	if how.Op = o.Kind(); !how.Op.Defined(b.Mem) {
		how.Type = mem.NoType
	}
	return how, nil
}

// elementOf returns the predefined type of all elements, nil if they differ or there are none. A
// pair is a single element.
func elementOf(t *typemap.Type) *typemap.Basic {
	if b := t.Basic(); b != nil {
		return b
	}
	if b := t.Uniform(); b != nil {
		return b
	}
	var all *typemap.Basic
	for _, part := range t.Contents().Types {
		b := elementOf(part)
		if b == nil || all != nil && b != all {
			return nil
		}
		all = b
	}
	return all
}

// requested starts an operation whose outcome a request has.
func (w *Win) requested(start func(keep rma.Keep) error) (*p2p.Request, error) {
	if err := w.Check(); err != nil {
		return nil, err
	}
	var started []core.Request
	if err := start(func(r core.Request) { started = append(started, r) }); err != nil {
		return nil, err
	}
	if len(started) == 0 {
		return p2p.RequestDone, nil
	}
	r := p2p.NewRequest(w.of).Of(w)
	r.Op, r.Others = started[0], started[1:]
	if w.flavor == flavorDynamic {
		r.Then = func(err error) error { return inRange(w.w.Outcome(err)) }
	}
	return r, nil
}

func Rput(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype,
	w *Win) (*p2p.Request, error) {
	return w.requested(func(keep rma.Keep) error { return w.put(data{buf, n, t}, place{rank, at, count, u}, keep) })
}

func Rget(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype,
	w *Win) (*p2p.Request, error) {
	return w.requested(func(keep rma.Keep) error { return w.get(data{buf, n, t}, place{rank, at, count, u}, keep) })
}

func Raccumulate(buf abi.Addr, n int, t *dtypes.Datatype, rank, at, count int, u *dtypes.Datatype, o *dtypes.Op,
	w *Win) (*p2p.Request, error) {
	return w.requested(func(keep rma.Keep) error {
		return w.accumulate(data{buf, n, t}, place{rank, at, count, u}, o, keep)
	})
}

func RgetAccumulate(buf abi.Addr, n int, t *dtypes.Datatype, result abi.Addr, m int, v *dtypes.Datatype, rank, at,
	count int, u *dtypes.Datatype, o *dtypes.Op, w *Win) (*p2p.Request, error) {
	return w.requested(func(keep rma.Keep) error {
		return w.getAccumulate(data{buf, n, t}, data{result, m, v}, place{rank, at, count, u}, o, keep)
	})
}
