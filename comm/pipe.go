package comm

import (
	"errors"
	"sync"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/engine"
	"gompi/internal/mem"
)

// Long allreduces of device memory by messages: instead of all being copied to the
// host, then combined, then copied back, pieces go after each other, so that both
// copies take place during the messages, and a few pieces of pinned memory do for any
// length. Where several ranks share a host, their devices combine first, and each
// copies its share alone (see levels).
//
// That changes the messages, so all ranks have to do it: they ask each other, if one
// of them may have devices and the vector is long.

const (
	// pipePiece is the bytes of a piece: enough for messages between hosts (2x2, as in
	// levels, in host memory: allreduce of 1 MiB in 371 us, of 16 MiB at once in
	// 15.8 ms).
	pipePiece = 1 << 20
	// pipeDepth pieces are under way at a time: half of them on their way to the host,
	// half back.
	pipeDepth = 8
	// pipeLeast is the bytes from which on ranks ask each other. It is a guess until a
	// GPU has been measured.
	pipeLeast = 4 * pipePiece
)

// throughMessages runs o by x, in pieces if it is a long one of device memory.
func (c *Comm) throughMessages(x collectives, o *operation) error {
	if c.library != nil {
		if done, err := c.byLibrary(way{x, c.ch.Round()}, o); done || err != nil {
			return err
		}
	}
	if o.call.Kind != engine.Allreduce || o.send.Size() < pipeLeast || c.table.Deterministic || !o.op.Commutes() || !c.mayHaveDevices() {
		return c.carryOut(x, o)
	}
	all, err := c.allOnDevices(o)
	switch {
	case err != nil:
		return err
	case !all:
		return c.carryOut(x, o)
	case c.levels == nil:
		return c.pipe(&c.messages, o.send, o.recv, o.op)
	}
	return c.pipeLevels(o)
}

// allOnDevices reports whether all ranks have o's buffers on devices, and those of a
// host on such that reach each other.
func (c *Comm) allOnDevices(o *operation) (bool, error) {
	_, ok := o.send.Space().(mem.Pinner)
	ok = ok && o.send.Space() == o.recv.Space()
	l := c.levels
	if l != nil && l.room != nil {
		var err error
		if ok, err = c.devices.Meet(o.send, o.recv); err != nil {
			return false, err
		}
	}
	word := []int32{0}
	if ok {
		word[0] = 1
	}
	all, least := Of(word), builtin(Min)
	if l == nil {
		err := c.messages.Allreduce(all, all, least)
		return word[0] == 1, err
	}
	speaker := l.speak(0)
	if l.me.member == speaker {
		if err := l.speakers.Allreduce(all, all, least); err != nil {
			return false, err
		}
	}
	err := l.inner.Bcast(speaker, all)
	return word[0] == 1, err
}

// pipeLevels is allreduceShares for device memory: only between hosts does it go
// through the hosts' memory.
func (c *Comm) pipeLevels(o *operation) error {
	l := c.levels
	from, mine := l.share(o.send), l.share(o.recv)
	if l.room != nil {
		c.devices.Carry(o.send, mine)
		if err := l.room.ReduceScatter(o.send, mine, l.shares, sum(o.op)); err != nil {
			return err
		}
		from = mine
	}
	if l.carries() {
		if err := c.pipe(&l.lane, from, mine, o.op); err != nil {
			return err
		}
	}
	if l.room == nil {
		return nil
	}
	c.devices.Carry(mine, o.recv)
	return l.room.Allgatherv(mine, o.recv, l.shares, nil)
}

// pipe combines the vectors src, one or more of each host, by x, and stores the result
// of all ranks' into dst, which is src or apart from it.
func (c *Comm) pipe(x collectives, src, dst Buffer, op coll.Op) error {
	n := src.Len()
	piece := min(pipePiece/src.Type().Size(), max(n, 1))
	empty, loaded, combined := make(chan Buffer, pipeDepth), make(chan Buffer, pipeDepth), make(chan Buffer, pipeDepth)
	part := func(b Buffer, i int) Buffer { return b.Slice(i*piece, min((i+1)*piece, n)) }
	pieces := (n + piece - 1) / piece
	for range min(pieces, pipeDepth) {
		s, err := c.staging.room(src.Slice(0, min(piece, n)))
		if err != nil {
			return err
		}
		defer c.staging.end(s)
		empty <- s.host
	}
	quit := make(chan struct{})
	var down, up error
	var copies sync.WaitGroup
	copies.Go(func() {
		defer close(loaded)
		for i := 0; i < pieces && down == nil; i++ {
			select {
			case <-quit:
				return
			case b := <-empty:
				if down = mem.Copy(b.Slice(0, part(src, i).Len()), part(src, i)); down == nil {
					loaded <- b
				}
			}
		}
	})
	copies.Go(func() {
		i := 0
		for b := range combined {
			if up == nil {
				up = mem.Copy(part(dst, i), b.Slice(0, part(dst, i).Len()))
			}
			i++
			empty <- b
		}
	})
	var err error
	for i := 0; i < pieces && err == nil; i++ {
		b, ok := <-loaded
		if !ok {
			break
		}
		here := b.Slice(0, part(src, i).Len())
		if err = x.Allreduce(here, here, sum(op)); err == nil {
			err = op.Finish(here, c.Size())
		}
		combined <- b
	}
	close(quit)
	close(combined)
	copies.Wait()
	return errors.Join(err, down, up)
}
