package comm

import (
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// A strip is the blocks of a vector, of each of which a piece takes a part. A vector that
// is not used has none.
type strip struct {
	of     Buffer
	blocks []span
}

// A span is the elements of a vector from lo to hi-1.
type span struct{ lo, hi int }

// strips returns the blocks of o's vectors on this rank, none of what it does not use.
func (o *operation) strips(rank, ranks int) (send, recv strip) {
	from, to := o.roles(rank == int(o.call.Root))
	if from != unused {
		send = strip{o.send, []span{{0, o.send.Len()}}}
	}
	if to != unused {
		recv = strip{o.recv, []span{{0, o.recv.Len()}}}
	}
	switch o.call.Kind {
	case engine.Allgather, engine.Gather, engine.Allgatherv, engine.Alltoall:
		recv.cut(ranks, o.counts, o.displs)
	}
	switch o.call.Kind {
	case engine.Scatter, engine.ReduceScatterBlock, engine.ReduceScatter, engine.Alltoall:
		send.cut(ranks, o.counts, nil)
	}
	return send, recv
}

func (s *strip) used() bool { return s.blocks != nil }

// cut divides a strip of one block among the ranks, evenly if counts is nil.
func (s *strip) cut(ranks int, counts, displs []int) {
	if !s.used() {
		return
	}
	s.blocks = nil
	end := 0
	for r := range ranks {
		n := s.of.Len() / ranks
		if counts != nil {
			n = counts[r]
		}
		if displs != nil {
			end = displs[r]
		}
		s.blocks = append(s.blocks, span{end, end + n})
		end += n
	}
}

// ith returns the i-th part of a block, each elements long.
func (b span) ith(i, each int) span {
	return span{min(b.lo+i*each, b.hi), min(b.lo+(i+1)*each, b.hi)}
}

// count returns the elements of all blocks' i-th part.
func (s *strip) count(i, each int) (n int) {
	for _, b := range s.blocks {
		b = b.ith(i, each)
		n += b.hi - b.lo
	}
	return n
}

// parts returns all blocks' i-th part, as one those that are next to each other.
func (s *strip) parts(i, each int) (parts []Buffer) {
	var now span
	flush := func() {
		if now.lo < now.hi {
			parts = append(parts, s.of.Slice(now.lo, now.hi))
		}
	}
	for _, b := range s.blocks {
		if b = b.ith(i, each); b.lo != now.hi {
			flush()
			now.lo = b.lo
		}
		now.hi = b.hi
	}
	flush()
	return parts
}

// copy copies all blocks' i-th part to host, where they follow each other, or back.
func (s *strip) copy(host Buffer, i, each int, back bool) error {
	there := s.parts(i, each)
	here, at := make([]Buffer, len(there)), 0
	for k, b := range there {
		here[k] = host.Slice(at, at+b.Len())
		at += b.Len()
	}
	if back {
		return mem.CopyAll(there, here)
	}
	return mem.CopyAll(here, there)
}
