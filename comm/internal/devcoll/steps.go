package devcoll

import (
	"slices"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// The movements of a step, and the steps of a transfer and of an allreduce.

const (
	filling = iota
	reducing
	taking
	movements
)

// chunkOf returns how many elements go in one step in each of the parts of a slot, at most most.
func (c *Comm) chunkOf(most, size, parts int) int {
	return max(min(most, (c.slot/parts&^(deviceLine-1))/size), 1)
}

// held returns n bytes of a member's slot of step s from off on.
func (c *Comm) held(member int, s uint64, off, n int) mem.Buffer {
	at := int(s%slots)*c.slot + off
	return c.arenas[member].Slice(at, at+n)
}

// acquire returns when this member may fill the slot of step s.
func (c *Comm) acquire(s uint64) error {
	c.team.LayElsewhere(s, slots)
	_, err := c.team.Acquire(s, false)
	return err
}

// on returns a movement's stream, to put work on.
func (c *Comm) on(movement int) mem.Stream {
	c.busy[movement] = true
	return c.streams[movement]
}

// combine puts op's result of srcs lo to hi-1 on a movement's stream.
func (c *Comm) combine(movement int, op call.Op, dst mem.Buffer, lo, hi int) error {
	return c.on(movement).Reduce(op.Kind, dst, c.srcs[lo:hi]...)
}

// finish waits until a movement's stream is done.
func (c *Comm) finish(movement int) error {
	if !c.busy[movement] {
		return nil
	}
	c.busy[movement] = false
	return c.streams[movement].Sync()
}

// A movement is one of the three of each step. start puts it on its stream, given the step and its
// first element; tell tells the others that it is done. It is made so many rounds after the first
// movement.
type movement struct {
	start func(s uint64, lo int) error
	tell  func(s uint64)
	after int
}

// rounds makes the movements of n elements, a chunk in each step. A movement without start is left
// out.
func (c *Comm) rounds(n, chunk int, moves *[movements]movement) error {
	steps := max((n+chunk-1)/chunk, 1)
	first := c.team.Next(steps)
	each := func(round int, f func(k, step int) error) error {
		for k, m := range moves {
			if step := round - m.after; m.start != nil && step >= 0 && step < steps {
				if err := f(k, step); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for i := range steps + moves[taking].after {
		err := each(i, func(k, step int) error { return moves[k].start(first+uint64(step), step*chunk) })
		if err == nil {
			err = each(i, func(k, step int) error {
				if err := c.finish(k); err != nil {
					return err
				}
				moves[k].tell(first + uint64(step))
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A transfer does a call.Transfer in steps.
type transfer struct {
	call.Transfer
	chunk int // elements of each block that go in one step
}

// run runs t.
func (c *Comm) run(t *transfer) error {
	parts := 1
	if t.Splits {
		parts = c.team.Size()
	}
	t.chunk = c.chunkOf(t.Longest, t.Size, parts)
	return c.rounds(t.Longest, t.chunk, &[movements]movement{
		filling: {start: func(s uint64, lo int) error { return c.fill(t, s, lo) }, tell: c.team.Filled},
		taking:  {start: func(s uint64, lo int) error { return c.take(t, s, lo) }, tell: c.team.Consumed, after: 1},
	})
}

// at returns where in a slot the part for a member begins, in the step that begins with element lo.
func (t *transfer) at(member, lo int) int {
	if !t.Splits {
		return 0
	}
	n := min(t.chunk, t.Longest-lo) * t.Size
	return member * ((n + deviceLine - 1) &^ (deviceLine - 1))
}

func (c *Comm) fill(t *transfer, s uint64, lo int) error {
	if err := c.acquire(s); err != nil || !t.Writes {
		return err
	}
	me, q := c.team.Me(), c.on(filling)
	for j := range c.arenas {
		if t.Splits && (j != me || t.Staged) || !t.Splits && j == 0 {
			b := t.Out(j, lo, t.chunk).Raw()
			if err := q.Copy(c.held(me, s, t.at(j, lo), b.Len()), b); err != nil {
				return err
			}
		}
	}
	return nil
}

// read waits for the n bytes that member j has for this one in step s, and returns them.
func (c *Comm) read(t *transfer, j int, s uint64, n, lo int) (mem.Buffer, error) {
	b := c.held(j, s, t.at(c.team.Me(), lo), n)
	if j == c.team.Me() { // filled in a round before
		return b, nil
	}
	return b, c.team.AwaitStep(j, s)
}

func (c *Comm) take(t *transfer, s uint64, lo int) error {
	if t.Folds {
		return c.takeFolding(t, s, lo)
	}
	me, q := c.team.Me(), c.on(taking)
	for i := t.Lo; i < t.Hi; i++ {
		j := t.From(i)
		dst := t.In(j, lo, t.chunk).Raw()
		src, err := dst, error(nil)
		if j != me {
			src, err = c.read(t, j, s, dst.Len(), lo)
		} else if t.Send.Len() > 0 {
			src = t.Out(me, lo, t.chunk).Raw()
		}
		if err == nil && !mem.Same(dst, src) {
			err = q.Copy(dst, src)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Comm) takeFolding(t *transfer, s uint64, lo int) error {
	if t.Lo == t.Hi {
		return nil
	}
	dst := t.In(0, lo, t.chunk)
	for j := t.Lo; j < t.Hi; j++ {
		if j == c.team.Me() && !t.Staged {
			c.srcs[j] = t.Out(j, lo, t.chunk)
			continue
		}
		b, err := c.read(t, j, s, dst.Size(), lo)
		if err != nil {
			return err
		}
		c.srcs[j] = b.As(dst)
	}
	return c.combine(taking, t.Op, dst, t.Lo, t.Hi)
}

// A shared vector is an allreduce: each worker combines its share of each step. It reads its own
// operand from its buffer and does not store it for others.
type shared struct {
	*Comm
	*call.Call
	chunk int // elements in a step
	mine  int // this member's number among the workers, -1 if it is none
}

func (c *Comm) allreduce(o *call.Call) error {
	v := shared{Comm: c, Call: o, chunk: c.chunkOf(o.Send.Len(), o.Type.Size(), 1), mine: slices.Index(c.workers, c.team.Me())}
	return c.rounds(o.Send.Len(), v.chunk, &[movements]movement{
		filling:  {start: v.fill, tell: c.team.Filled},
		reducing: {start: v.reduce, tell: c.team.ResultReady, after: 1},
		taking:   {start: v.take, tell: c.team.Consumed, after: 2},
	})
}

// share returns the elements of a worker's share of the step that begins with element base.
func (v *shared) share(base, worker int) (lo, hi int) {
	n := min(v.chunk, v.Send.Len()-base)
	lo, hi = mem.Share(n, len(v.workers), deviceLine/v.Type.Size(), worker)
	return base + lo, base + hi
}

// stored returns where a member stores elements lo to hi-1 of the step s that begins
// with element base.
func (v *shared) stored(member int, s uint64, base, lo, hi int) mem.Buffer {
	return v.held(member, s, (lo-base)*v.Type.Size(), (hi-lo)*v.Type.Size())
}

func (v *shared) fill(s uint64, base int) error {
	if err := v.acquire(s); err != nil {
		return err
	}
	end := min(base+v.chunk, v.Send.Len())
	lo, hi := end, end // what is not stored
	if v.mine >= 0 {
		lo, hi = v.share(base, v.mine)
	}
	me, q := v.team.Me(), v.on(filling)
	err := q.Copy(v.stored(me, s, base, base, lo), v.Send.Slice(base, lo).Raw())
	if err == nil && hi < end {
		err = q.Copy(v.stored(me, s, base, hi, end), v.Send.Slice(hi, end).Raw())
	}
	return err
}

func (v *shared) reduce(s uint64, base int) error {
	if v.mine < 0 {
		return nil
	}
	me := v.team.Me()
	lo, hi := v.share(base, v.mine)
	for j := range v.arenas {
		if j == me {
			v.srcs[j] = v.Send.Slice(lo, hi)
			continue
		}
		if err := v.team.AwaitStep(j, s); err != nil {
			return err
		}
		v.srcs[j] = v.stored(j, s, base, lo, hi).As(v.Send)
	}
	return v.combine(reducing, v.Op, v.stored(me, s, base, lo, hi).As(v.Send), 0, len(v.arenas))
}

func (v *shared) take(s uint64, base int) error {
	for i, w := range v.workers {
		if w != v.team.Me() {
			if err := v.team.AwaitResult(w, s); err != nil {
				return err
			}
		}
		lo, hi := v.share(base, i)
		if err := v.on(taking).Copy(v.Recv.Slice(lo, hi).Raw(), v.stored(w, s, base, lo, hi)); err != nil {
			return err
		}
	}
	return nil
}
