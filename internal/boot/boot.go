// Package boot connects a rank with its job before any connection between ranks exists. Later it
// reports events that no such connection can: that a rank died, that a communicator was revoked,
// that the job is to end.
//
// A Boot is two-way and asynchronous. Upwards go the rank's card (how to reach it), revocations,
// aborts and the goodbye; downwards come all ranks' cards, deaths, revocations and the order to
// end.
//
// There are three: of a rank of gompirun, over a socket to its host's agent
// (agentConn); of a rank that another launcher started, over a connection to rank 0,
// whose server does what agents do (client); and of ranks that are goroutines of one
// process (Member), of which a job of one rank is the smallest.
package boot

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Info is what a rank knows from the start.
type Info struct {
	Rank        world.Rank
	Size        int
	LocalRank   world.LocalRank
	LocalSize   int
	Node, Nodes int
	Program     int      // of those that the job's command line names, from 0
	JobID       string   // a UUID; it identifies, never authenticates
	Secret      [32]byte // keys the handshake of every data connection
	NodeOf      []int32  // node of each rank; nil means all on node 0
	Hosts       []string // host name of each node
	Recover     bool     // the job continues when a rank dies, and ranks can agree on the living

	// Ranks from Size on are those of replacements, Spares on each node. Invite, if not nil, states
	// that this one is a replacement, and in which agreement it votes first.
	Spares int
	Invite *wire.Invite

	// What the ranks of this host share, with their agent if there is one; nil if
	// there is nothing. They stay open as long as the process.
	Segment  *seg.Segment
	Bells    []int // doorbell descriptors, by local rank
	Unshared error // why there is no Segment, although this rank is not alone on its host

	flight *seg.Recorder
}

// Flight returns this rank's state line and flight recorder in the segment, nil
// without one. Every call returns the same.
func (in *Info) Flight() *seg.Recorder { return in.flight }

// Host returns the name of rank's host.
func (in *Info) Host(rank world.Rank) string {
	n := in.NodeIndex(rank)
	if n >= len(in.Hosts) {
		return "localhost"
	}
	return in.Hosts[n]
}

// NodeIndex returns the node that rank runs on.
func (in *Info) NodeIndex(rank world.Rank) int {
	if past := int(rank) - in.Size; past >= 0 && in.Spares > 0 {
		return past / in.Spares
	}
	if in.NodeOf == nil {
		return 0
	}
	return int(in.NodeOf[rank])
}

// Places returns how many ranks there may be, with all replacements.
func (in *Info) Places() int { return in.Size + in.Spares*max(in.Nodes, 1) }

// A Boot connects a rank with its launcher. Methods may be called from any
// goroutine; only Allgather blocks.
type Boot interface {
	Info() *Info

	// Allgather sends mine up and returns what every rank sent, by rank, and nothing for places of
	// replacements that have not come. It is called once, by all ranks. It fails when ctx ends,
	// when a rank died or ended before it contributed, or when the launcher is gone.
	Allgather(ctx context.Context, mine []byte) ([][]byte, error)

	// FD returns a descriptor that is readable while Events has something to return, or -1 if there
	// is none and SetWake notifies of events.
	FD() int

	// SetWake registers a function that is called, from any goroutine and
	// without blocking, when Events may have something new. A Boot with an FD
	// need not call it.
	SetWake(wake func())

	// Pending reports whether Events may have something. It is cheap enough for a spin loop. It may
	// report true when there is nothing. With a host segment it reports false for an event at most
	// until the agent has written one word of shared memory.
	Pending() bool

	// Events returns what came down since the last call, without blocking.
	Events() []Event

	// Revoke notifies all ranks, this one too, that communicator comm is broken, unless they have
	// been notified. cause is opaque here.
	Revoke(comm uint64, cause []byte) error

	// Inquire asks for a Left event, once the given rank has left. Where rank 0 stands in for a
	// launcher, no answer comes when it has left itself.
	Inquire(rank world.Rank) error

	// Vote takes part in an agreement of the living members of a communicator. The Agreed event
	// follows when all have voted or ended, behind the Died events of all that it leaves out. It
	// fails unless the Info has Recover.
	Vote(v *wire.Vote) error

	// Abort asks the launcher to end the whole job with the given status.
	Abort(code int, reason string) error

	// Goodbye notifies the launcher that this rank has closed its communicators and may end when it
	// likes. The Boot is not used after it. aloud makes the launcher learn it at once, not at the
	// end of the process, since others may inquire.
	Goodbye(aloud bool) error
}

// A Detacher is a Boot whose launcher takes back the shared memory of ranks that died while the job
// continues.
type Detacher interface {
	Boot
	// Detached reports that this rank will not touch the arena of a rank of its host again, whose
	// Died event it has had. When all ranks of the host have reported so, the arena is freed.
	Detached(rank world.Rank) error
}

// An EventKind is what an Event reports.
type EventKind uint8

// The events.
const (
	Died      EventKind = iota + 1 // Rank ended without goodbye; Text describes how
	Revoked                        // Comm was revoked by Rank; Text is its cause
	Terminate                      // the job is to end; Text is the reason
	Gone                           // the launcher itself is gone; Text describes how
	Left                           // Rank has sent goodbye; reported if a rank has inquired
	Agreed                         // an agreement is decided: Outcome
)

// An Event is one piece of news from the launcher.
type Event struct {
	Kind EventKind
	Rank world.Rank
	Comm uint64
	Text []byte

	Outcome *wire.Outcome // shared and read-only
}

// asError returns why an Allgather cannot succeed after e, to a rank that knows in.
func (e *Event) asError(in *Info) error {
	switch e.Kind {
	case Died:
		if int(e.Rank) < in.Places() && len(in.Hosts) > 0 {
			return fmt.Errorf("rank %d (host %s): %s", e.Rank, in.Host(e.Rank), e.Text)
		}
		return fmt.Errorf("rank %d: %s", e.Rank, e.Text)
	case Left:
		return fmt.Errorf("rank %d left before all ranks had met", e.Rank)
	case Terminate:
		return fmt.Errorf("the job ends: %s", e.Text)
	}
	return errGone
}

var (
	errGone     = errors.New("the launcher is gone")
	errNoVoting = errors.New("this job ends when a rank dies: want gompirun, with -recover")
)
