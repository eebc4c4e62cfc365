package errs

import (
	"cmp"
	"sync"
	"sync/atomic"

	"gompi/mpi/internal/abi"
)

var Handlers = abi.NewRegistry(abi.ErrhandlerNull, func(e *Errhandler) abi.Handle { return e.Handle }).LateReuse()

// An Errhandler is the error handler of a communicator, a session, a file or a window.
type Errhandler struct {
	Handle abi.Handle
	kind   int          // of the objects that have this handler: KindComm and so on
	fn     abi.Addr     // of the program, 0 for predefined handlers
	held   atomic.Int32 // how often the program has the handle
}

// The kinds of objects that have error handlers, as a Face has them.
const (
	KindComm    = 1
	KindSession = 9
	KindWin     = 10
	KindFile    = 11
)

// Check returns an error if h is not valid, or not for objects of a kind.
func (h *Errhandler) Check(kind int) error {
	switch {
	case h == nil:
		return New(Arg, "the error handler is not valid")
	case h.fn != 0 && h.kind != kind:
		return New(Arg, "the error handler is for objects of another kind")
	}
	return nil
}

// Returns reports whether nothing is done but that the function returns the error.
func (h *Errhandler) Returns() bool {
	return h.Handle == abi.ErrorsReturn || h.Handle == abi.ErrorsThrow
}

// ErrorsAreFatal is the first handler of communicators, ErrorsReturn the first handler of files.
var (
	ErrorsAreFatal = predefined(abi.ErrorsAreFatal)
	ErrorsReturn   = predefined(abi.ErrorsReturn)
)

func init() {
	predefined(abi.ErrorsAbort)
	predefined(abi.ErrorsThrow)
}

func predefined(h abi.Handle) *Errhandler {
	e := &Errhandler{Handle: h}
	Handlers.Set(h, e)
	return e
}

// Call calls the program's function for an object of a kind, and reports whether h has a
// function.
func (h *Errhandler) Call(kind int, object abi.Handle, c abi.Class) bool {
	if h.fn == 0 {
		return false
	}
	abi.C.CallErrhandler(h.fn, h.Handle, kind, object, c)
	return true
}

// NewHandler returns a handler for objects of a kind.
func NewHandler(kind int, fn abi.Addr) (*Errhandler, error) {
	h := &Errhandler{fn: fn, kind: kind}
	h.held.Store(1)
	h.Handle = Handlers.Add(h)
	return h, nil
}

// SetLanguage says which language the function is in, other than C.
func (h *Errhandler) SetLanguage(language int) { h.fn = h.fn.In(language) }

// Hold gives the program the handle once more.
func (h *Errhandler) Hold() {
	if h.fn != 0 && h.held.Add(1) == 1 {
		Handlers.Restore(h.Handle, h) // the handle was freed
	}
}

// ErrhandlerFree takes the handle back. Objects keep their error handlers.
func ErrhandlerFree(h *abi.Handle) error {
	e := Handlers.Find(*h)
	if e == nil {
		return New(Arg, "the error handler is not valid")
	}
	if e.fn != 0 && e.held.Add(-1) == 0 {
		Handlers.Remove(*h)
	}
	*h = Handlers.Null
	return nil
}

// A Holder is the error handler that an object has.
type Holder struct {
	mu      sync.Mutex
	Handler *Errhandler // nil: the initial one; read by Errhandler once others know the object
}

// Errhandler returns the error handler, ErrorsAreFatal at first.
func (o *Holder) Errhandler() *Errhandler {
	o.mu.Lock()
	defer o.mu.Unlock()
	return cmp.Or(o.Handler, ErrorsAreFatal)
}

// IsSet reports whether the program has set the error handler.
func (o *Holder) IsSet() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Handler != nil
}

func (o *Holder) SetErrhandler(kind int, h *Errhandler) error {
	if err := h.Check(kind); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Handler = h
	return nil
}

// GetErrhandler gives the program the handle once more: each is freed for itself.
func (o *Holder) GetErrhandler() (*Errhandler, error) {
	h := o.Errhandler()
	h.Hold()
	return h, nil
}
