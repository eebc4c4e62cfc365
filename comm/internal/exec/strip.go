package exec

import (
	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// A strip is the blocks of a vector, of each of which a piece takes a part. A vector that
// is not used has none.
type strip struct {
	of     mem.Buffer
	blocks []call.Span
}

// strips returns the blocks of o's vectors on this rank, none of what it does not use.
func strips(o *call.Call, rank, ranks int) (send, recv strip) {
	from, to := o.Blocks(rank, ranks)
	return strip{o.Send, from}, strip{o.Recv, to}
}

func (s *strip) used() bool { return s.blocks != nil }

// ith returns the i-th part of a block, each elements long.
func ith(b call.Span, i, each int) call.Span {
	return call.Span{Lo: min(b.Lo+i*each, b.Hi), Hi: min(b.Lo+(i+1)*each, b.Hi)}
}

// count returns the elements of all blocks' i-th part.
func (s *strip) count(i, each int) (n int) {
	for _, b := range s.blocks {
		b = ith(b, i, each)
		n += b.Hi - b.Lo
	}
	return n
}

// parts returns all blocks' i-th part, as one those that are next to each other.
func (s *strip) parts(i, each int) (parts []mem.Buffer) {
	var now call.Span
	flush := func() {
		if now.Lo < now.Hi {
			parts = append(parts, s.of.Slice(now.Lo, now.Hi))
		}
	}
	for _, b := range s.blocks {
		if b = ith(b, i, each); b.Lo != now.Hi {
			flush()
			now.Lo = b.Lo
		}
		now.Hi = b.Hi
	}
	flush()
	return parts
}

// copy copies all blocks' i-th part to host, where they follow each other, or back.
func (s *strip) copy(host mem.Buffer, i, each int, back bool) error {
	there := s.parts(i, each)
	here, at := make([]mem.Buffer, len(there)), 0
	for k, b := range there {
		here[k] = host.Slice(at, at+b.Len())
		at += b.Len()
	}
	if back {
		return mem.CopyAll(there, here)
	}
	return mem.CopyAll(here, there)
}
