package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gompi/internal/core/call"
	"gompi/internal/core/exec"
	"gompi/internal/core/liveness"
	"gompi/internal/core/memory"
	"gompi/internal/core/message"
	"gompi/internal/core/record"
)

// The reasons an operation fails, for errors.Is.
var (
	ErrMismatch   = liveness.ErrMismatch
	ErrRevoked    = liveness.ErrRevoked
	ErrLeft       = liveness.ErrLeft
	ErrClosed     = liveness.ErrClosed
	ErrTruncated  = message.ErrTruncated
	ErrType       = message.ErrType
	ErrArgument   = call.ErrArgument
	ErrConcurrent = exec.ErrConcurrent
	ErrMemory     = memory.ErrMemory
)

// Errors with details, for errors.As.
type (
	MismatchError = liveness.MismatchError
	RevokedError  = liveness.RevokedError
)

// An Error names the failed operation, its rank and communicator, and the peer: Peer and Host are
// -1 and empty if no single peer is to blame. Site is the place of the call in the program, if the
// program is to blame.
type Error struct {
	Op   string
	Comm string
	Rank int
	Peer int
	Host string // of Peer
	Site string
	Err  error
}

func (e *Error) Error() string {
	s := e.Op
	if e.Site != "" {
		s += " at " + e.Site
	}
	s += ": "
	if e.Rank >= 0 { // in Init the rank may not be known
		s += fmt.Sprintf("rank %d of %s: ", e.Rank, e.Comm)
	}
	if e.Peer >= 0 {
		s += fmt.Sprintf("peer %d (host %s): ", e.Peer, e.Host)
	}
	return s + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ofTheProgram are the reasons that a line of the program explains.
var ofTheProgram = [...]error{ErrArgument, ErrMismatch, ErrTruncated, ErrType, ErrConcurrent, ErrClosed,
	context.DeadlineExceeded, context.Canceled}

// fault wraps err, nil included, with the place of the failure.
func (c *Comm) fault(op string, peer int, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Comm: c.name, Rank: c.Rank(), Peer: peer, Err: err}
	if slices.ContainsFunc(ofTheProgram[:], func(of error) bool { return errors.Is(err, of) }) {
		e.Site = record.CallSite()
	}
	var revoked *liveness.RevokedError
	if peer < 0 || peer >= c.Size() || errors.As(err, &revoked) {
		e.Peer = -1 // the cause names the rank that matters
	} else {
		e.Host = c.Host(peer)
	}
	return e
}

// BadArgument returns an ErrArgument with a text.
func BadArgument(format string, args ...any) error { return call.BadArgument(format, args...) }
