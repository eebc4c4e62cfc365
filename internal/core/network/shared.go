package network

import (
	"gompi/internal/core/path"
	"gompi/internal/poll"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/shm"
)

// sharedMemory is the transport to ranks of the same host. Its part of a card is a byte that tells
// whether the rank has the transport: ranks of a host may differ in this.
type sharedMemory struct {
	*network
	t       *shm.Transport
	without []world.Rank // of the job, that lack the transport
}

// open opens no transport if the ranks of this host share no memory, or TCP is to be used.
func (w *sharedMemory) open(sink transport.Sink) (transport.Transport, error) {
	s := w.info.Segment
	if w.info.Unshared != nil && w.Transport != "tcp" {
		w.Logger.Warn("no shared memory: TCP has to do", "err", w.info.Unshared)
	}
	if s == nil || s.Area() == nil || s.Ranks() > shm.MaxRanks || s.Ranks() == 1 || w.Transport == "tcp" {
		return nil, nil
	}
	ranks := make([]world.Rank, s.Ranks())
	for i := range ranks {
		ranks[i] = s.WorldRank(world.LocalRank(i))
	}
	t, err := shm.New(shm.Config{
		Local: w.info.LocalRank, Ranks: ranks, Area: s.Area(), Claim: s.Claim, Release: s.Release,
		Heap: func(local world.LocalRank) []byte {
			_, heap := seg.Divide(s.Arena(local))
			return heap
		},
		Ring: func(local world.LocalRank) { poll.Ring(w.info.Bells[local]) },
		PID:  s.PID,
		State: func(local world.LocalRank) shm.State {
			switch {
			case s.State(local) < seg.Closed:
				return shm.Alive
			case s.State(local) == seg.Closed || s.LeftAt(local) != 0:
				return shm.Left
			}
			return shm.Dead
		},
	}, sink)
	if err != nil {
		w.Logger.Warn("no shared memory: TCP has to do", "err", err)
		return nil, nil
	}
	w.t = t
	return t, nil
}

func (w *sharedMemory) card() []byte {
	if w.t == nil {
		return []byte{0}
	}
	return []byte{1}
}

func (w *sharedMemory) setCards(parts [][]byte) error {
	for r, part := range parts {
		w.admit(world.Rank(r), part)
	}
	return nil
}

func (w *sharedMemory) admit(rank world.Rank, part []byte) error {
	if len(part) == 0 || part[0] != 0 {
		return nil
	}
	w.without = append(w.without, rank)
	if w.t != nil {
		w.t.Exclude(rank)
	}
	return nil
}

// setRules takes the shape of the rings from the rules that all ranks agree on.
func (w *sharedMemory) setRules(r *path.Rules) {
	if w.t != nil {
		chunk, bytes := r.Ring()
		w.t.SetShape(shm.Shape{Chunk: chunk, Bytes: bytes})
	}
}
