package exec

import (
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// A blockLayout holds the places of the blocks of a vector. A chunk of the pipeline takes a part of
// each block. A vector that is not used has no blocks.
type blockLayout struct {
	of     mem.Buffer
	blocks []call.Span
}

// layouts returns the blocks of o's vectors on a rank.
func layouts(o *call.Call, rank, ranks int) (send, recv blockLayout) {
	from, to := o.Blocks(rank, ranks)
	return blockLayout{o.Send, from}, blockLayout{o.Recv, to}
}

func (s *blockLayout) used() bool { return s.blocks != nil }

// part returns the i-th part of a block. A part has each elements, the last fewer.
func part(b call.Span, i, each int) call.Span {
	return call.Span{Lo: min(b.Lo+i*each, b.Hi), Hi: min(b.Lo+(i+1)*each, b.Hi)}
}

// count returns the number of elements in the i-th parts of all blocks.
func (s *blockLayout) count(i, each int) (n int) {
	for _, b := range s.blocks {
		b = part(b, i, each)
		n += b.Hi - b.Lo
	}
	return n
}

// parts returns the i-th parts of all blocks. Adjacent parts are merged.
func (s *blockLayout) parts(i, each int) (parts []mem.Buffer) {
	var now call.Span
	flush := func() {
		if now.Lo < now.Hi {
			parts = append(parts, s.of.Slice(now.Lo, now.Hi))
		}
	}
	for _, b := range s.blocks {
		if b = part(b, i, each); b.Lo != now.Hi {
			flush()
			now.Lo = b.Lo
		}
		now.Hi = b.Hi
	}
	flush()
	return parts
}

// copy copies the i-th parts of all blocks to consecutive places in host, or back.
func (s *blockLayout) copy(host mem.Buffer, i, each int, back bool) error {
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
