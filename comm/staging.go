package comm

import (
	"context"

	"gompi/comm/internal/engine"
	"gompi/comm/internal/staging"
)

// Messages of device memory. One longer than engine.PieceSize the engine itself takes through
// pieces of host memory, which staging lends it.

// staged reports whether a message in b is staged: a short one is copied once.
func staged(b Buffer) bool { return !b.IsHost() && b.Size() <= engine.PieceSize }

func (c *Comm) sendStaged(ctx context.Context, to, tag int, b Buffer, sync bool) error {
	s, err := c.staging.Load(b)
	if err == nil {
		defer c.staging.End(s)
		err = c.ch.Send(ctx, to, tag, s.Host, sync)
	}
	return err
}

// recvStaged receives by recv, which is given b or a stage of it.
func (c *Comm) recvStaged(b Buffer, recv func(Buffer) (engine.Status, error)) (engine.Status, error) {
	if !staged(b) {
		return recv(b)
	}
	s, err := c.staging.Room(b)
	if err != nil {
		return engine.Status{}, err
	}
	st, err := recv(s.Host)
	return st, c.received(s, st, err)
}

func (c *Comm) sendrecvStaged(ctx context.Context, to, sendTag int, send Buffer, from, recvTag int, recv Buffer) (engine.Status, error) {
	out := staging.Stage{Host: send}
	if staged(send) {
		var err error
		if out, err = c.staging.Load(send); err != nil {
			return engine.Status{}, err
		}
		defer c.staging.End(out)
	}
	return c.recvStaged(recv, func(in Buffer) (engine.Status, error) {
		return c.ch.Sendrecv(ctx, to, sendTag, out.Host, from, recvTag, in)
	})
}

// startStaged starts a message between stages. The message itself begins here, so
// that it keeps its place in the order; a goroutine ends what is returned when it is
// there.
func (c *Comm) startStaged(k requestKind, peer, tag int, b Buffer) engine.Handle {
	prepare := c.staging.Load
	if k == recvRequest {
		prepare = c.staging.Room
	}
	s, err := prepare(b)
	if err != nil {
		return c.failed(err)
	}
	m := c.launch(k, peer, tag, s.Host)
	h := c.e.Expect(m)
	go c.finishStaged(k, h, m, s)
	return h
}

func (c *Comm) finishStaged(k requestKind, h, m engine.Handle, s staging.Stage) {
	st, _, err := c.e.Wait(context.Background(), m) // ends with the message, or with the communicator
	if k == recvRequest {
		err = c.received(s, st, err)
	} else {
		c.staging.End(s)
	}
	c.e.Complete(h, st, err)
}

// received ends the stage of a receive with the outcome given: the message is
// stored as far as it came.
func (c *Comm) received(s staging.Stage, got engine.Status, err error) error {
	defer c.staging.End(s)
	if stored := s.Store(min(got.Bytes, s.Of.Size())); err == nil {
		err = stored
	}
	return err
}
