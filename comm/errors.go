package comm

import (
	"errors"
	"fmt"

	"gompi/comm/internal/liveness"
	"gompi/comm/internal/message"
	"gompi/comm/internal/record"
)

// The reasons an operation fails, for errors.Is.
var (
	// ErrMismatch: ranks called different collectives, or the same one with different types,
	// operators, roots or counts; errors.As with a *MismatchError gives both calls. Or they made
	// communicators of groups that differ.
	ErrMismatch = liveness.ErrMismatch
	// ErrRevoked: the communicator is broken: a rank died, a connection was
	// cut, or an operation under way was given up. errors.As with a
	// *RevokedError gives the cause.
	ErrRevoked = liveness.ErrRevoked
	// ErrTruncated: a message was longer than the buffer posted for it; the
	// buffer holds its beginning. The message is consumed; the Comm stays usable.
	ErrTruncated = message.ErrTruncated
	// ErrType: a message was sent with another element type. The message is consumed;
	// the Comm stays usable.
	ErrType = message.ErrType
	// ErrLeft: the peer has closed the communicator, or all it had, and left.
	ErrLeft = liveness.ErrLeft
	// ErrClosed: the communicator was closed here. It unwraps to net.ErrClosed.
	ErrClosed = liveness.ErrClosed
	// ErrConcurrent: two goroutines were inside blocking collectives of one
	// communicator; Dup it instead.
	ErrConcurrent = errors.New("another goroutine is inside a collective of this communicator; use Dup")
	// ErrMemory: there is not as much memory as Alloc was asked for, on some rank.
	// All ranks get it; nothing was taken and nothing is broken.
	ErrMemory = errors.New("not enough memory")
	// ErrArgument: an argument is wrong. Nothing was sent and nothing is broken.
	ErrArgument = errors.New("bad argument")
)

// A MismatchError names two calls that should have been the same.
type MismatchError = liveness.MismatchError

// A RevokedError says why a communicator is broken.
type RevokedError = liveness.RevokedError

// An Error says which operation failed, on which rank of which communicator,
// and with whom: Peer and Host are -1 and empty if no one peer is to blame. Site is
// where the program made the call, as "train/main.go:55", if the program is to blame:
// for ErrArgument and ErrMismatch. It unwraps to the reason.
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
	if e.Rank >= 0 { // known, which it may not be in Init
		s += fmt.Sprintf("rank %d of %s: ", e.Rank, e.Comm)
	}
	if e.Peer >= 0 {
		s += fmt.Sprintf("peer %d (host %s): ", e.Peer, e.Host)
	}
	return s + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// fault wraps err, nil included, with where it happened.
func (c *Comm) fault(op string, peer int, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Comm: c.name, Rank: c.Rank(), Peer: peer, Err: err}
	if errors.Is(err, ErrArgument) || errors.Is(err, ErrMismatch) {
		e.Site = record.CallSite()
	}
	var revoked *RevokedError
	if peer < 0 || peer >= c.Size() || errors.As(err, &revoked) {
		e.Peer = -1 // the cause names the rank that matters
	} else {
		e.Host = c.Host(peer)
	}
	return e
}

func badArgument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
}
