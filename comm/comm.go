package comm

import (
	"context"

	"gompi/internal/core"
)

// A Comm is a communicator: an ordered group of ranks, with messages that no other Comm sees. Its
// methods may be called from any goroutine, its collectives from one at a time.
type Comm core.Comm

// core returns the engine's communicator that c is.
func (c *Comm) core() *core.Comm { return (*core.Comm)(c) }

// made returns the communicator that a function of the engine has returned.
func made(c *core.Comm, err error) (*Comm, error) { return (*Comm)(c), err }

// Rank returns this process's number in c, 0 to Size()-1.
func (c *Comm) Rank() int { return c.core().Rank() }

// Size returns the number of ranks in c.
func (c *Comm) Size() int { return c.core().Size() }

// Name returns c's name, for messages: "world" for the first communicator, "world/split" for one
// that Split has made of it. Shrink and Restore count instead, so that the name does not grow:
// "world/shrink(3)" was made by Shrink, and two communicators between world and it by Shrink or
// Restore. SetName does not begin the count anew.
func (c *Comm) Name() string { return c.core().Name() }

// SetName names c, on this rank only. It must not run beside other methods.
func (c *Comm) SetName(name string) { c.core().SetName(name) }

// Host returns the name of the host that a rank of c runs on.
func (c *Comm) Host(rank int) string { return c.core().Host(rank) }

// String names c and this rank: "world[3/8]".
func (c *Comm) String() string { return c.core().String() }

// Err returns why c is broken or closed, nil while it works.
func (c *Comm) Err() error { return c.core().Err() }

// Abort ends the whole job: the launcher ends every rank and exits with code,
// of which the low 8 bits count and 0 becomes 1. Abort returns when the
// launcher has been notified; it does not end this process.
func (c *Comm) Abort(code int, reason string) error { return c.core().Abort(code, reason) }

// Close closes c on this rank (MPI_Comm_free, for the last communicator MPI_Finalize). Collectives
// that are under way end with ErrClosed before it returns, unless ctx ends before. Sends that are
// under way are lost, except on the last communicator to be closed: closing that one leaves the
// job, which delivers what was sent, at most until ctx ends, and notifies the peers and the
// launcher that this rank ends well.
//
// Ranks may close at different times, but Close waits for the others up to a second in two cases:
// where NCCL has served, and where the last collective may have ended here before others began it,
// as at the root of a Bcast. In that case their calls are compared with this rank's, and Close
// returns ErrMismatch if they differ. It waits for no rank that has left. Over RDMA, closing
// the last communicator waits until every rank that exchanged messages with this one makes a call,
// or ctx ends. A second Close does nothing.
func (c *Comm) Close(ctx context.Context) error { return c.core().Close(ctx) }

// Hide leaves the later calls on c of this rank out of what gompirun reports of it, in the reports
// of ranks that wait and in -stats: it is for a Comm on which a library does work of its own beside
// the program. It is called before all other methods.
func (c *Comm) Hide() { c.core().Hide() }

// SetSite has the launcher's reports name site, as in "train.py:31", as the place where the program
// waits, whatever call that is, until the next SetSite: of a program that is not in Go, which shows
// no place itself. "" is none.
func (c *Comm) SetSite(site string) { c.core().SetSite(site) }
