// Package record writes the calls that wait for long to the flight recorder, each with its place in
// the program. There the launcher reads which rank waits for which. Calls that do not wait cost
// nothing: collectives are recorded when they begin, without a time, and messages not at all.
package record

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"gompi/internal/calls"
	"gompi/internal/core/progress"
	"gompi/internal/seg"
)

// A Call is a call in which a goroutine waits.
type Call interface {
	// Describe returns the call for the recorder. Without a Kind in c, nothing is recorded. A
	// collective has a record already: ticket is the ticket of that record, and c has only the
	// communicator.
	Describe() (c seg.Call, ticket seg.Ticket, collective bool)
	// Stalled is called when the wait has lasted for long.
	Stalled()
}

// A Wait is the wait of a single goroutine. Long waits are written to the flight recorder.
type Wait struct {
	progress.Waiter
	flight   *seg.Recorder // nil without a host segment
	call     Call
	recorded bool
	ticket   seg.Ticket
}

// Init prepares a new Wait.
func (w *Wait) Init(flight *seg.Recorder, call Call) {
	w.flight, w.call = flight, call
	w.Waiter.Init(w)
}

// Reset returns w to its state after Init.
func (w *Wait) Reset() {
	w.Waiter.Reset()
	w.recorded = false
}

// Stalled implements progress.Owner. It records the call of w's goroutine, the caller, which has
// waited for progress.StallAfter.
func (w *Wait) Stalled() {
	if !w.recorded && w.flight != nil {
		w.recorded = true
		w.record()
	}
	w.call.Stalled()
}

func (w *Wait) record() {
	since := seg.Now() - int64(progress.StallAfter)
	c, ticket, collective := w.call.Describe()
	if c.Kind == calls.None && !collective {
		return
	}
	w.flight.SetName(c.Comm)
	if collective {
		w.flight.Stamp(ticket, since)
		if !w.Background {
			w.setSite(ticket)
		}
		return
	}
	c.Start = since
	w.ticket = w.flight.BeginCall(&c)
	w.setSite(w.ticket)
}

// setSite notes the place of the call in the program. A program in C may name the place itself.
func (w *Wait) setSite(ticket seg.Ticket) {
	if site := CallSite(); site != "" {
		w.flight.SetSite(ticket, site)
	}
}

// Ended implements progress.Owner.
func (w *Wait) Ended() {
	if w.ticket != 0 {
		w.flight.EndCall(w.ticket)
		w.ticket = 0
	}
}

// CallSite returns the innermost place on this goroutine's stack that is not in
// this library, as "train/main.go:55", or the function of MPI by which the program has called;
// "" if there is none.
func CallSite() string {
	var pcs [48]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if name, ok := ofMPI(f.Function); ok {
			return name
		}
		if f.File != "" && !isLibrary(f.Function) && !isForC(f) {
			return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(f.File)), path.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// ofMPI returns the function of MPI that a function of package mpi is called for:
// MPI_Type_create_hvector for callTypeCreateHvector.
func ofMPI(function string) (name string, ok bool) {
	name, ok = strings.CutPrefix(function, "gompi/mpi/internal.")
	if called, is := strings.CutPrefix(name, "call"); is {
		name = called
	} else if name != "Init" && name != "Finalize" {
		return "", false
	}
	b := []byte("MPI")
	for _, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			if b = append(b, '_'); len(b) > len("MPI_") {
				c += 'a' - 'A'
			}
		}
		b = append(b, c)
	}
	return string(b), ok
}

// isForC reports whether f belongs to the layer between C and this library: its caller is a
// program that has no frames here.
func isForC(f runtime.Frame) bool {
	return strings.HasPrefix(f.Function, "_cgoexp_") ||
		strings.HasPrefix(f.Function, "main.") &&
			(strings.HasSuffix(path.Dir(f.File), "gompi_torch/libgompi") || strings.HasSuffix(path.Dir(f.File), "mpi/libmpi"))
}

// isLibrary reports whether a function belongs to the runtime or to this library. The library's
// tests count as programs.
func isLibrary(function string) bool {
	for _, prefix := range []string{"runtime.", "gompi/comm.", "gompi/comm/", "gompi/internal/", "gompi/mpi/"} {
		if strings.HasPrefix(function, prefix) {
			return !strings.Contains(function, "_test.")
		}
	}
	return false
}
