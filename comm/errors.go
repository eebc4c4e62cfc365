package comm

import (
	"gompi/internal/core"
)

// The reasons an operation fails, for errors.Is.
var (
	// ErrMismatch: ranks called different collectives, or the same collective with different types,
	// operators, roots or counts; errors.As with a *MismatchError gives both calls. Or they made
	// communicators of groups that differ.
	ErrMismatch = core.ErrMismatch
	// ErrRevoked: the communicator is broken: a rank died, a connection was cut, or an operation
	// under way was given up. errors.As with a *RevokedError gives the cause.
	ErrRevoked = core.ErrRevoked
	// ErrTruncated: a message was longer than the posted buffer, which holds the beginning. The
	// message is consumed; the Comm stays usable.
	ErrTruncated = core.ErrTruncated
	// ErrType: a message was sent with another element type. The message is consumed;
	// the Comm stays usable.
	ErrType = core.ErrType
	// ErrLeft: the peer has closed the communicator, or all its communicators, and left.
	ErrLeft = core.ErrLeft
	// ErrClosed: the communicator was closed here. The error unwraps to net.ErrClosed.
	ErrClosed = core.ErrClosed
	// ErrConcurrent: two goroutines were inside blocking collectives of one communicator; use a Dup
	// instead.
	ErrConcurrent = core.ErrConcurrent
	// ErrMemory: some rank has less memory than Alloc was asked for. All ranks get this error;
	// nothing was taken and nothing is broken.
	ErrMemory = core.ErrMemory
	// ErrArgument: an argument is wrong. Nothing was sent and nothing is broken.
	ErrArgument = core.ErrArgument
)

// A MismatchError names two calls that should have been the same: Rank made Call and Peer made
// PeerCall, each as collective Seq of their communicator. If the calls are equal, a block differs
// in length or type: Rank expected Block, and Peer sent PeerBlock.
//
//	Seq              uint64
//	Rank, Peer       int
//	Call, PeerCall   fmt.Stringer  // such as "allreduce(8 int64, sum)"
//	Block, PeerBlock fmt.Stringer  // such as "8 bytes of int64"
type MismatchError = core.MismatchError

// A RevokedError says why a communicator is broken: Rank, of that communicator, died or gave up a
// call. Rank is -1 if no single rank is the cause.
//
//	Rank  int
//	Host  string  // of Rank
//	Cause string  // such as "exited with status 1"
//	Died  bool    // whether Rank died or was cut off
type RevokedError = core.RevokedError

// An Error describes a failed operation: its rank, its communicator and its peer. Peer and Host are
// -1 and empty if no single peer is to blame. Site is the place in the program, such as
// "train/main.go:55", that made the call or waited for the Request, if the program is to blame: for
// ErrArgument, ErrMismatch, ErrTruncated, ErrType, ErrConcurrent and ErrClosed, and for a context
// that ended. An Error unwraps to the reason.
//
//	Op   string
//	Comm string
//	Rank int
//	Peer int
//	Host string // of Peer
//	Site string
//	Err  error
type Error = core.Error
