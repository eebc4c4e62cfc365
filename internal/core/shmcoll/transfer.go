package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
)

// A transfer does a call.Transfer in steps.
type transfer struct {
	call.Transfer
	chunk       int  // elements of each block in a step
	compared    bool // the members' calls have been, in a step before
	large       bool // chunks go around the L3 buffers
	nonTemporal bool // received data is stored with non-temporal stores
	forks       bool // data for the others is stored to Recv at the same time
}

// transferInChunks does t in chunks.
func (c *Collectives) transferInChunks(p path.Chunk, t *transfer) error {
	size, blocks := t.Size, 1
	if t.Splits {
		blocks = c.Size()
		size *= blocks
	}
	t.large, t.chunk = p.Large, max(p.Of(t.Longest*t.Size, blocks)/t.Size, 1)
	t.nonTemporal = c.paths.NonTemporal(c.footprint(t))
	t.forks = t.Writes && t.Full && !t.Splits && !t.Folds
	steps := max((t.Longest+t.chunk-1)/t.chunk, 1)
	first := c.Next(steps)
	last, ahead := c.Last(), c.Ahead(t.chunk*size, t.large)
	filled := first - 1
	for s := first; s <= last; s++ {
		for ; filled < min(last, s+ahead-1); filled++ {
			if err := c.fill(t, filled+1, first); err != nil {
				return err
			}
		}
		if s == first && steps > 1 && !t.compared {
			// A long collective must not end before this member knows that all others do the same:
			// otherwise the members' step counters would differ from then on.
			if err := c.AwaitCalls(first); err != nil {
				return err
			}
		}
		if err := c.take(t, s, first); err != nil {
			return err
		}
		c.Consumed(s)
	}
	return nil
}

// transferInOneStep does t in a single step.
func (c *Collectives) transferInOneStep(t *transfer) error {
	t.chunk = max(t.Longest, 1)
	s := c.Next(1)
	if err := c.fill(t, s, s); err != nil {
		return err
	}
	if t.Full {
		if err := c.Assemble(s, !t.compared); err != nil {
			return err
		}
	}
	if err := c.take(t, s, s); err != nil {
		return err
	}
	if t.Full {
		c.AllConsumed(s)
	} else {
		c.Consumed(s)
	}
	return nil
}

// bytes returns the bytes of the longest block's chunk in a step that begins with element lo.
func (t *transfer) bytes(lo int) int { return min(t.chunk, t.Longest-lo) * t.Size }

// fill fills step s, if this member has data for this step.
func (c *Collectives) fill(t *transfer, s, first uint64) error {
	lo := int(s-first) * t.chunk
	n := t.bytes(lo)
	if t.Splits {
		n *= c.Size()
	}
	c.Lay(s, n, t.large, t.Full)
	begins := s == first && !t.compared
	if !t.Writes && !begins {
		return nil
	}
	h, err := c.Acquire(s, begins)
	if err != nil {
		return err
	}
	if t.Writes {
		c.pack(t, s, lo)
	}
	c.Publish(h, s)
	return nil
}

// pack copies the blocks for the others, from element lo of each on.
func (c *Collectives) pack(t *transfer, s uint64, lo int) {
	me := c.Me()
	if !t.Splits {
		b := t.OutBytes(me, lo, t.chunk)
		to := c.Room(s, len(b))
		if t.forks {
			c.fork(t, t.InBytes(me, lo, t.chunk), to, b)
		} else {
			c.copy(to, b)
		}
		return
	}
	each := t.bytes(lo)
	room := c.Room(s, each*c.Size())
	for j := range c.Size() {
		if j != me || t.Staged {
			b := t.OutBytes(j, lo, t.chunk)
			c.copy(room[c.Block(j, s)*each:][:len(b)], b)
		}
	}
}

// read waits for the n bytes of member j for this member in step s, and returns them.
func (c *Collectives) read(t *transfer, j int, s, first uint64, n, lo int) (b []byte, err error) {
	switch {
	case j == c.Me():
	case s == first && !t.compared:
		err = c.AwaitCall(j, s)
	default:
		err = c.AwaitStep(j, s)
	}
	off := 0
	if t.Splits {
		off = c.Block(c.Me(), s) * t.bytes(lo)
	}
	return c.Payload(j, s, off, n), err
}

// take reads the data for this member in step s.
func (c *Collectives) take(t *transfer, s, first uint64) error {
	lo := int(s-first) * t.chunk
	if t.Folds {
		return c.takeFolding(t, s, first, lo)
	}
	for i := t.Lo; i < t.Hi; i++ {
		j := t.From(i)
		dst := t.InBytes(j, lo, t.chunk)
		if j == c.Me() {
			if own := t.OutBytes(j, lo, t.chunk); !t.forks && len(own) > 0 && &own[0] != &dst[0] {
				store(dst, own, t.nonTemporal)
			}
			continue
		}
		src, err := c.read(t, j, s, first, len(dst), lo)
		if err != nil {
			return err
		}
		store(dst, src, t.nonTemporal)
	}
	return nil
}

// takeFolding reads step s and combines its operands.
func (c *Collectives) takeFolding(t *transfer, s, first uint64, lo int) error {
	if t.Lo == t.Hi {
		return nil
	}
	b := t.InBytes(0, lo, t.chunk)
	n := len(b) / t.Size
	for j := t.Lo; j < t.Hi; j++ {
		var src []byte
		var err error
		if j == c.Me() && !t.Staged {
			src = t.OutBytes(j, lo, t.chunk)
		} else if src, err = c.read(t, j, s, first, len(b), lo); err != nil {
			return err
		}
		c.srcs[j] = mem.HostLike(t.Send, n, src)
	}
	return c.combineTo(&t.Transfer, mem.HostLike(t.Send, n, b), t.nonTemporal)
}
