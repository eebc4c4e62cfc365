package comm

import (
	"context"

	"gompi/internal/core"
)

// A Comm is a communicator: an ordered group of ranks, with messages that no other Comm sees. Its
// methods may be called from any goroutine, its collectives from one goroutine at a time.
type Comm core.Comm

// core returns c as the engine's communicator.
func (c *Comm) core() *core.Comm { return (*core.Comm)(c) }

// made converts the results of an engine function.
func made(c *core.Comm, err error) (*Comm, error) { return (*Comm)(c), err }

// Rank returns this process's number in c, 0 to Size()-1.
func (c *Comm) Rank() int { return c.core().Rank() }

// Size returns the number of ranks in c.
func (c *Comm) Size() int { return c.core().Size() }

// Name returns c's name, for messages: "world" for the first communicator, "world/split" for the
// result of a Split of "world". Shrink and Restore count instead, so that the name does not grow:
// Shrink made "world/shrink(3)", with two communicators of Shrink or Restore between world and it.
// SetName does not restart the count.
func (c *Comm) Name() string { return c.core().Name() }

// SetName names c, on this rank only. It must not run beside other methods.
func (c *Comm) SetName(name string) { c.core().SetName(name) }

// Host returns the name of the host that a rank of c runs on.
func (c *Comm) Host(rank int) string { return c.core().Host(rank) }

// String names c and this rank: "world[3/8]".
func (c *Comm) String() string { return c.core().String() }

// Err returns why c is broken or closed, nil while c works.
func (c *Comm) Err() error { return c.core().Err() }

// Abort ends the whole job: the launcher ends every rank and exits with code, of which the low 8
// bits count and 0 becomes 1. Abort returns after notifying the launcher; it does not end this
// process.
func (c *Comm) Abort(code int, reason string) error { return c.core().Abort(code, reason) }

// Close closes c on this rank (MPI_Comm_free, for the last communicator MPI_Finalize). Collectives
// under way end with ErrClosed before Close returns, unless ctx ends before. Sends under way are
// lost, except on the last communicator to be closed: its Close leaves the job. It delivers all
// sent messages, at most until ctx ends, and notifies the peers and the launcher that this rank
// ends well.
//
// Ranks may close at different times, but Close waits for the others up to a second in two cases:
// after NCCL has done collectives, and if the last collective may have ended here before others
// began it, as at the root of a Bcast. In the second case the ranks' calls are compared, and Close
// returns ErrMismatch if they differ. Close waits for no rank that has left. Over RDMA, closing the
// last communicator waits until every rank that exchanged messages with this one makes a call, or
// ctx ends. A second Close does nothing.
func (c *Comm) Close(ctx context.Context) error { return c.core().Close(ctx) }

// Hide excludes the later calls on c of this rank from gompirun's reports of waiting ranks and from
// -stats. It serves a Comm for a library's own work beside the program. Hide is called before all
// other methods.
func (c *Comm) Hide() { c.core().Hide() }

// SetSite sets the place in the program, such as "train.py:31", that the launcher's reports name
// for a wait in any call, until the next SetSite. It serves programs in languages other than Go,
// whose places are not found otherwise. "" is none.
func (c *Comm) SetSite(site string) { c.core().SetSite(site) }
