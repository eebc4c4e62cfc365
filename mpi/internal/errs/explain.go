package errs

import (
	"errors"
	"fmt"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/seg"
)

// Explain describes err in the terms of MPI: core's errors name core's own functions and types.
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

// calledAs returns a collective with its arguments: "MPI_Allreduce(1 MPI_INT, MPI_SUM)".
func calledAs(f *call.Fingerprint) string {
	c := seg.Call{Kind: f.Kind, Of: f.Of, Type: f.Type, Op: f.Op, Peer: int(f.Root), Count: f.Count,
		Size: int64(f.Size)}
	if f.Kind.LocalCounts() {
		c.Type = mem.NoType
	}
	return c.MPI()
}
