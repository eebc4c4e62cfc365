package comm

import (
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// A strip is the blocks of a vector, of each of which a piece takes a part.
type strip []Buffer

// strips returns the blocks of o's vectors on this rank, none of what it does not use.
func (o *operation) strips(rank, ranks int) (send, recv strip) {
	from, to := o.roles(rank == int(o.call.Root))
	if from != unused {
		send = strip{o.send}
	}
	if to != unused {
		recv = strip{o.recv}
	}
	switch o.call.Kind {
	case engine.Allgather, engine.Gather, engine.Allgatherv, engine.Alltoall:
		recv = recv.cut(ranks, o.counts, o.displs)
	}
	switch o.call.Kind {
	case engine.Scatter, engine.ReduceScatterBlock, engine.ReduceScatter, engine.Alltoall:
		send = send.cut(ranks, o.counts, nil)
	}
	return send, recv
}

// cut divides a strip of one block among the ranks, evenly if counts is nil.
func (s strip) cut(ranks int, counts, displs []int) (blocks strip) {
	if s == nil {
		return nil
	}
	end := 0
	for r := range ranks {
		n := s[0].Len() / ranks
		if counts != nil {
			n = counts[r]
		}
		if displs != nil {
			end = displs[r]
		}
		blocks = append(blocks, s[0].Slice(end, end+n))
		end += n
	}
	return blocks
}

// ith returns the i-th part of a block, each elements long.
func ith(b Buffer, i, each int) Buffer {
	return b.Slice(min(i*each, b.Len()), min((i+1)*each, b.Len()))
}

// count returns the elements of all blocks' i-th part.
func (s strip) count(i, each int) (n int) {
	for _, b := range s {
		n += ith(b, i, each).Len()
	}
	return n
}

// copy copies all blocks' i-th part to host, where they follow each other, or back.
func (s strip) copy(host Buffer, i, each int, back bool) error {
	at := 0
	for _, b := range s {
		b = ith(b, i, each)
		here := host.Slice(at, at+b.Len())
		at += b.Len()
		if b.Len() == 0 {
			continue
		}
		dst, src := here, b
		if back {
			dst, src = b, here
		}
		if err := mem.Copy(dst, src); err != nil {
			return err
		}
	}
	return nil
}
