package errs

import (
	"errors"
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Explain says err as a user of MPI would: core's errors name its own functions and types.
func Explain(err error) string {
	var e *core.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := fmt.Sprintf("rank %d: ", e.Rank)
	if e.Peer >= 0 {
		text += fmt.Sprintf("peer %d (host %s): ", e.Peer, e.Host)
	}
	var m *core.MismatchError
	if errors.As(err, &m) && m.Call != m.PeerCall {
		return text + fmt.Sprintf("collective %d: rank %d called %s, but rank %d called %s",
			m.Seq, m.Rank, calledAs(&m.Call), m.Peer, calledAs(&m.PeerCall))
	}
	return text + e.Err.Error()
}

// A Function of MPI's makes collectives of core whose names are not its own. It is their Digest,
// so that they match those of no other function, and errors name it.
type Function uint32

// The functions. Those from across on are collectives of intercommunicators, by Kind.
const (
	Finalize Function = 1 + iota
	IntercommMerge
	CommSplit
	CommCreate
	across
)

// Across returns the collective of a Kind on an intercommunicator.
func Across(k calls.Kind) Function { return across + Function(k) }

var functions = [across]string{Finalize: "MPI_Finalize", IntercommMerge: "MPI_Intercomm_merge", CommSplit: "MPI_Comm_split", CommCreate: "MPI_Comm_create"}

// functionOf returns the function of MPI that has made a collective, "" if it has that one's name.
func functionOf(f *call.Fingerprint) string {
	switch f.Kind {
	case calls.Barrier, calls.Allgather, calls.Alltoallw: // their Digest is of no counts
	default:
		return ""
	}
	if of := Function(f.Digest); of > across {
		return seg.Call{Kind: calls.Kind(of - across)}.Function()
	}
	return functions[f.Digest]
}

// calledAs returns a collective with its arguments: "MPI_Allreduce(1 MPI_INT, MPI_SUM)".
func calledAs(f *call.Fingerprint) string {
	if name := functionOf(f); name != "" {
		return name + "()"
	}
	c := seg.Call{Kind: f.Kind, Type: f.Type, Op: f.Op, Peer: int(f.Root), Count: f.Count, Size: int64(f.Size)}
	if f.Kind.LocalCounts() {
		c.Type = mem.NoType
	}
	return c.MPI()
}
