package comms

import (
	"context"
	"slices"
	"sync"

	"gompi/internal/core"
)

// Keep keeps c open until Let, even if the program frees c: a persistent request may be started
// and a matched message received after MPI_Comm_free (MPI 4.1, section 7.4.3).
func (c *Comm) Keep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept++
}

// Let undoes a Keep. The last Let after the program has freed c closes c.
func (c *Comm) Let() {
	c.mu.Lock()
	c.kept--
	last := c.kept == 0 && c.Freed()
	c.mu.Unlock()
	if last {
		c.close()
	}
}

// retire notes that the program has freed c, and reports whether c may be closed.
func (c *Comm) retire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed.Store(true)
	return c.kept == 0
}

// unused reports whether the program has freed c and no Keep holds c open.
func (c *Comm) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Freed() && c.kept == 0
}

// close closes the parts of c when no operation is under way on c, not between the engine's calls
// of a single call.
func (c *Comm) close() {
	queues := []*queue{&c.votes}
	if c.Inter != nil {
		queues = append(queues, &c.Inter.queue)
	}
	closing.addBehind(queues, c.parts()...)
}

// CloseWhenIdle closes the communicators of a copy when nothing is under way on them.
func (x *Inter) CloseWhenIdle() { closing.addBehind([]*queue{&x.queue}, x.Both, x.Local) }

// closeNow closes c at the end.
func (c *Comm) closeNow(ctx context.Context) {
	for _, d := range c.parts() {
		_ = d.Close(ctx)
	}
}

func (c *Comm) parts() []*core.Comm {
	if c.making.Load() {
		return nil
	}
	parts := []*core.Comm{c.P2P}
	if c.Topology.Kind != 0 {
		parts = append(parts, c.Topology.Messages)
	}
	if c.Inter != nil {
		parts = append(parts, c.Inter.Both, c.Inter.Local)
	}
	return slices.DeleteFunc(parts, func(d *core.Comm) bool { return d == nil })
}

// owned are communicators outside those with a handle: the communicators of files and windows.
var owned sync.Map // of *core.Comm

// Own registers d, until Disown: MPI_Finalize closes d, and reports use d's name.
func Own(d *core.Comm)    { owned.Store(d, nil) }
func Disown(d *core.Comm) { owned.Delete(d) }

// closing are the communicators that were freed and may have messages under way.
var closing freed

type freed struct {
	mu  sync.Mutex
	all []ending
}

// An ending is a communicator that is closed when no operation is under way on it. Without c, it
// stands for queued calls that end earlier.
type ending struct {
	c    *core.Comm
	over <-chan error
}

// CloseWhenIdle closes d when nothing is under way on d.
func CloseWhenIdle(d *core.Comm) { closing.add(d) }

func (f *freed) add(d *core.Comm) { f.expect(ending{d, d.CloseWhenIdle()}) }

func (f *freed) expect(e ending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(e ending) bool { return len(e.over) > 0 })
	f.all = append(f.all, e)
}

// addBehind adds communicators when nothing is in queues any more.
func (f *freed) addBehind(queues []*queue, all ...*core.Comm) {
	over := make(chan error, 1)
	last := func() {
		f.addBehind(queues[1:], all...)
		over <- nil
	}
	switch {
	case len(queues) == 0:
		for _, d := range all {
			f.add(d)
		}
	case queues[0].behind(last):
		f.expect(ending{over: over})
	default:
		f.addBehind(queues[1:], all...)
	}
}

// closeNow closes all at the end, or as many as possible until ctx ends. All ranks have come to the
// end: a posted receive will match no message, and a pending send no receive.
func (f *freed) closeNow(ctx context.Context) {
	for e, some := f.next(); some; e, some = f.next() {
		if e.c != nil {
			_ = e.c.Close(ctx)
		}
		select {
		case <-e.over:
		case <-ctx.Done():
			return
		}
	}
}

// next returns an ending that closeNow has not waited for.
func (f *freed) next() (e ending, some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if some = len(f.all) > 0; some {
		e, f.all = f.all[0], f.all[1:]
	}
	return e, some
}
