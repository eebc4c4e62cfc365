package files

import (
	"unsafe"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
)

// escape keeps short slices whose addresses become numbers off stacks, which move.
var escape = func(*byte) {}

func addressOf(b []byte) abi.Addr { escape(&b[0]); return abi.Addr(uintptr(unsafe.Pointer(&b[0]))) }

// Whether an access writes.
const (
	Reads  = false
	Writes = true
)

// A Place is the position at which an access begins.
type Place struct {
	by     pointer
	offset int  // in etypes, of explicit
	begins bool // a split collective
}

// function returns the name of a collective function that accesses p.
func (p Place) function(write bool) string {
	name := "MPI_File_read"
	if write {
		name = "MPI_File_write"
	}
	name += [...]string{explicit: "_at_all", individual: "_all", ordered: "_ordered"}[p.by]
	if p.begins {
		name += "_begin"
	}
	return name
}

type pointer int

const (
	explicit   pointer = iota
	individual         // which moves on
	shared             // which moves on
	ordered            // the shared pointer, after the data of lower ranks
)

var (
	AtPointer = Place{by: individual}
	AtShared  = Place{by: shared}
	InOrder   = Place{by: ordered}
)

func At(offset int) Place { return Place{by: explicit, offset: offset} }

// prepare returns an access at p. Positions advance by the requested amount, whatever has moved.
// In order, prepare is collective.
func (f *File) prepare(write bool, p Place, buf abi.Addr, n int, t *dtypes.Datatype) (*access, error) {
	f.mu.Lock()
	a := &access{f: f, v: f.view, write: write, atomic: f.atomic, buf: buf, count: n, t: t}
	f.mu.Unlock()
	err := a.check(p)
	switch {
	case p.by == ordered:
		return a, f.all(p.function(write)).inOrder(a, err)
	case err != nil:
		return nil, err
	case p.by == individual:
		f.mu.Lock()
		a.at, f.at = f.at, f.at+a.n
		f.mu.Unlock()
	case p.by == shared:
		a.at, err = f.shared.update(f.name, func(old int) int { return old + a.n })
	default:
		a.at = p.offset * a.v.unit
	}
	return a, err
}

// check sets the bytes that a moves, and returns an error if a is not valid.
func (a *access) check(p Place) error {
	if err := dtypes.Check(a.count, a.t); err != nil {
		return err
	}
	a.n = a.count * a.t.Size()
	if a.v.rep == external32 {
		a.n = a.t.ExternalSize(a.count)
	}
	m := a.f.mode
	switch {
	case a.write && m.has(readOnly):
		return errs.New(errs.ReadOnly, "the file was opened with MPI_MODE_RDONLY")
	case !a.write && m.has(writeOnly):
		return errs.New(errs.Access, "the file was opened with MPI_MODE_WRONLY")
	case m.has(sequential) && p.by != shared && p.by != ordered:
		return errSequential
	case a.n%a.v.unit != 0:
		return errs.New(errs.IO, "the data has %d bytes: want a multiple of the etype's %d", a.n, a.v.unit)
	case a.n > 0 && a.v.size() == 0:
		return errs.New(errs.IO, "the filetype has no data, and %d bytes are asked for", a.n)
	}
	return a.v.checkOffset(p.offset)
}

// inOrder finds the place of a after the data of lower ranks. err is the error of a, if any.
func (t team) inOrder(a *access, err error) error {
	sizes, err := t.gather(err, nil, []int64{int64(a.n)})
	if err != nil {
		return err
	}
	before, all := 0, 0
	for r, n := range sizes {
		if r < t.c.Rank() {
			before += int(n)
		}
		all += int(n)
	}
	reply := make([]int64, 1)
	err = t.first(reply, func() error {
		at, err := a.f.shared.update(a.f.name, func(old int) int { return old + all })
		reply[0] = int64(at)
		return err
	})
	a.at = int(reply[0]) + before
	return err
}

// ---- Forms ----

func statusOf(bytes int) abi.Status {
	st := abi.OfNothing
	st.Bytes = int64(bytes)
	return st
}

// Access is a blocking access.
func Access(write bool, p Place, f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	a, err := f.prepare(write, p, buf, n, t)
	if err != nil {
		return err
	}
	moved, err := a.move()
	st.Set(statusOf(moved))
	return err
}

// slots bounds the accesses under way beside the program: each takes a thread.
var slots = make(chan struct{}, 16)

// begin starts a, and calls done at its end.
func (a *access) begin(done func(moved int, err error)) {
	a.f.under.Add(1)
	go func() {
		slots <- struct{}{}
		moved, err := a.move()
		<-slots
		a.f.under.Done()
		done(moved, err)
	}()
}

// StartAccess is a nonblocking access. If it is collective, but not in order, it needs no messages.
func StartAccess(write bool, p Place, f *File, buf abi.Addr, n int, t *dtypes.Datatype) (*p2p.Request, error) {
	a, err := f.prepare(write, p, buf, n, t)
	if err != nil {
		return nil, err
	}
	r := p2p.NewRequest(comms.World).Of(f)
	world := comms.World.P2P
	r.Op = world.Promise()
	var bytes int
	var outcome error
	r.Then = func(err error) error {
		r.Finish(statusOf(bytes))
		if err == nil {
			err = outcome
		}
		return err
	}
	a.begin(func(op core.Request) func(int, error) {
		return func(moved int, err error) {
			bytes, outcome = moved, err
			world.Complete(op, nil)
		}
	}(r.Op))
	return r, nil
}

// A pending is a split collective under way.
type pending struct {
	name  string
	over  chan struct{}
	moved int
	err   error
}

// BeginSplit is the first part of a split collective.
func BeginSplit(write bool, p Place, f *File, buf abi.Addr, n int, t *dtypes.Datatype) error {
	s := &pending{name: p.function(write), over: make(chan struct{})}
	f.mu.Lock()
	other := f.split
	if other == nil {
		f.split = s
	}
	f.mu.Unlock()
	if other != nil {
		return errs.New(errs.IO, "%s_begin was called, and %[1]s_end was not", other.name)
	}
	p.begins = true
	a, err := f.prepare(write, p, buf, n, t)
	if err != nil {
		f.mu.Lock()
		f.split = nil
		f.mu.Unlock()
		return err
	}
	a.begin(func(moved int, err error) {
		s.moved, s.err = moved, err
		close(s.over)
	})
	return nil
}

// EndSplit is the second part.
func EndSplit(write bool, p Place, f *File, buf abi.Addr, st *abi.Status) error {
	name := p.function(write)
	f.mu.Lock()
	s := f.split
	ours := s != nil && s.name == name
	if ours {
		f.split = nil
	}
	f.mu.Unlock()
	if !ours {
		return errs.New(errs.IO, "%s_begin was not called", name)
	}
	<-s.over
	st.Set(statusOf(s.moved))
	return s.err
}
