// Package boot connects a rank with its job before any connection between ranks exists. Later it
// reports events that no such connection can: the death of a rank, the revocation of a
// communicator, the end of the job.
//
// A Boot is two-way and asynchronous. Upwards go the rank's card (its addresses), revocations,
// aborts and the goodbye; downwards come all ranks' cards, deaths, revocations and the order to
// end.
//
// There are three Boots. agentConn, for a rank of gompirun, is a socket to its host's agent.
// client, for a rank that another launcher started, is a connection to rank 0, whose server
// replaces the agents. Member is for ranks that are goroutines of one process, and for a job of one
// rank.
package boot

import (
	"context"
	"errors"
	"fmt"

	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// Info is a rank's knowledge of its job from the start.
type Info struct {
	Rank        world.Rank
	Size        int
	LocalRank   world.LocalRank
	LocalSize   int
	Node, Nodes int
	Program     int      // index among the programs of the job's command line, from 0
	JobID       string   // a UUID; it identifies, never authenticates
	Secret      [32]byte // keys the handshake of every data connection
	NodeOf      []int32  // node of each rank; nil means all on node 0
	Hosts       []string // host name of each node
	Recover     bool     // the job continues when a rank dies, and the living can agree

	// Ranks from Size on are replacements, Spares on each node. If Invite is not nil, this rank is
	// a replacement, and Invite names the agreement in which it votes first.
	Spares int
	Invite *wire.Invite

	// Resources that the ranks of this host share, with their agent if there is one; nil without.
	// They stay open as long as the process.
	Segment  *seg.Segment
	Bells    []int // doorbell descriptors, by local rank
	Unshared error // why there is no Segment, although other ranks run on this host

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

// Places returns the largest number of ranks that the job may have, with all replacements.
func (in *Info) Places() int { return in.Size + in.Spares*max(in.Nodes, 1) }

// A Boot connects a rank with its launcher. Methods may be called from any
// goroutine; only Allgather blocks.
type Boot interface {
	Info() *Info

	// Allgather sends mine up and returns every rank's card, by rank, and nothing for absent
	// replacements. Allgather is called once, by all ranks. It fails when ctx ends, when a rank
	// died or ended before contributing, or when the launcher is gone.
	Allgather(ctx context.Context, mine []byte) ([][]byte, error)

	// FD returns a descriptor that is readable while Events has something to return, or -1 if
	// SetWake's function announces events instead.
	FD() int

	// SetWake registers a function that is called, from any goroutine and without blocking, when
	// Events may have something new. A Boot with an FD need not call the function.
	SetWake(wake func())

	// Pending reports whether Events may have something. Pending is cheap enough for a spin loop
	// and may report true in vain. With a host segment Pending misses an event only until the agent
	// has written one word of shared memory.
	Pending() bool

	// Events returns the events since the last call, without blocking.
	Events() []Event

	// Revoke notifies all ranks, this one too, that communicator comm is revoked, unless they have
	// been notified. cause is opaque here.
	Revoke(comm uint64, cause []byte) error

	// Inquire asks for a Left event when the given rank leaves, or has left. Without an agent, no
	// answer comes after rank 0 has left.
	Inquire(rank world.Rank) error

	// Vote takes part in an agreement of the living members of a communicator. When all members
	// have voted or ended, the Agreed event follows, behind the Died events of all excluded
	// members. Without Info.Recover, Vote fails.
	Vote(v *wire.Vote) error

	// Abort asks the launcher to end the whole job with the given status.
	Abort(code int, reason string) error

	// Goodbye notifies the launcher that this rank has closed its communicators and may end at any
	// time. The Boot is not used afterwards. aloud notifies the launcher at once, not at the end of
	// the process, for other ranks' inquiries.
	Goodbye(aloud bool) error
}

// A Detacher is a Boot whose launcher recovers the shared memory of dead ranks while the job
// continues.
type Detacher interface {
	Boot
	// Detached reports that this rank will not touch the arena of a dead rank of its host again.
	// Its Died event must have been reported. When all ranks of the host have called Detached, the
	// arena is freed.
	Detached(rank world.Rank) error
}

// An EventKind is the kind of an Event.
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

// An Event is a report of the launcher.
type Event struct {
	Kind EventKind
	Rank world.Rank
	Comm uint64
	Text []byte

	Outcome *wire.Outcome // shared and read-only
}

// asError returns the error of an Allgather that e ends. in is the knowledge of the rank.
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
