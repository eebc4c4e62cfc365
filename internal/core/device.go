package core

import (
	"context"

	"gompi/internal/core/exec"
	"gompi/internal/core/message"
	"gompi/internal/core/payload"
	"gompi/internal/core/progress"
	"gompi/internal/mem"
)

// Paths of collectives of device memory. Where ranks may have devices, a long collective begins
// with an exchange of where all ranks' buffers are. If some are on devices, the collective goes
// through pinned host memory in chunks (package exec). In a short collective each rank stages its
// own buffers, without an exchange. Where NCCL is wanted, it comes first.

// firstWith returns the first rank that may have buffers on devices, or that has no devices; -1 if
// there is none.
func (c *Comm) firstWith(devices bool) int {
	for r := range c.Size() {
		if c.withDevices[c.ch.World(r)] == devices {
			return r
		}
	}
	return -1
}

func (c *Comm) warn(what string, why error) { c.log.Warn(what, "comm", c.name, "err", why) }

// Messages of device memory. A short message is staged here: copied once, whole. Package payload
// takes messages longer than StagingChunk through chunks of pinned memory, which staging lends.

// staged reports whether a message in b is staged here.
func staged(b mem.Buffer) bool { return b.OnDevice() && b.Size() <= payload.StagingChunk }

func (c *Comm) sendStaged(ctx context.Context, to, tag int, b mem.Buffer, sync bool) error {
	s, err := c.staging.Load(b)
	if err == nil {
		defer c.staging.End(s)
		err = c.ch.Send(ctx, to, tag, s.Host, sync)
	}
	return err
}

// recvStaged receives by recv, into b or a stage of b.
func (c *Comm) recvStaged(b mem.Buffer, recv func(mem.Buffer) (message.Status, error)) (message.Status, error) {
	if !staged(b) {
		return recv(b)
	}
	s, err := c.staging.Get(b)
	if err != nil {
		return message.Status{}, err
	}
	st, err := recv(s.Host)
	return st, c.received(s, st, err)
}

func (c *Comm) sendrecvStaged(
	ctx context.Context, to, sendTag int, send mem.Buffer, from, recvTag int, recv mem.Buffer,
) (message.Status, error) {
	out := exec.Stage{Host: send}
	if staged(send) {
		var err error
		if out, err = c.staging.Load(send); err != nil {
			return message.Status{}, err
		}
		defer c.staging.End(out)
	}
	return c.recvStaged(recv, func(in mem.Buffer) (message.Status, error) {
		return c.ch.Sendrecv(ctx, to, sendTag, out.Host, from, recvTag, in)
	})
}

// startStaged starts a message between stages. The message begins at once, so that it keeps its
// place in the order. A goroutine completes the returned handle after the message and the copy.
func (c *Comm) startStaged(k requestKind, peer, tag int, b mem.Buffer) message.Handle {
	prepare := c.staging.Load
	if k == recvRequest {
		prepare = c.staging.Get
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

func (c *Comm) finishStaged(k requestKind, h, m message.Handle, s exec.Stage) {
	st, _, err := c.e.Wait(progress.InBackground(context.Background()), m) // ends at the latest when c breaks
	if k == recvRequest {
		err = c.received(s, st, err)
	} else {
		c.staging.End(s)
	}
	c.e.Complete(h, st, err)
}

// received ends the stage of a receive with the given outcome, and copies the received data to
// the buffer.
func (c *Comm) received(s exec.Stage, got message.Status, err error) error {
	defer c.staging.End(s)
	if stored := s.Store(min(got.Bytes, s.Of.Size())); err == nil {
		err = stored
	}
	return err
}
