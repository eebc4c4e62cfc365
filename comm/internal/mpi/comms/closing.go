package comms

import (
	"context"
	"slices"
	"sync"

	"gompi/comm"
	"gompi/comm/internal/door"
)

// close takes c apart when nothing is under way on it.
func (c *Comm) close() {
	for _, d := range c.parts() {
		closing.add(d)
	}
}

// closeNow closes c at the end.
func (c *Comm) closeNow(ctx context.Context) {
	for _, d := range c.parts() {
		_ = d.Close(ctx)
	}
}

func (c *Comm) parts() []*comm.Comm {
	if c.making.Load() {
		return nil
	}
	parts := []*comm.Comm{c.P2P}
	if c.Topology.Kind != 0 {
		parts = append(parts, c.Topology.Messages)
	}
	if c.Inter != nil {
		parts = append(parts, c.Inter.Both, c.Inter.Local)
	}
	return slices.DeleteFunc(parts, func(d *comm.Comm) bool { return d == nil })
}

// owned are communicators that no communicator with a handle has: those of files and windows.
var owned sync.Map // of *comm.Comm

// Own has d closed at the end, and named in reports by its own name, until Disown.
func Own(d *comm.Comm)    { owned.Store(d, nil) }
func Disown(d *comm.Comm) { owned.Delete(d) }

// closing are the communicators that were freed and may have messages under way.
var closing freed

type freed struct {
	mu  sync.Mutex
	all []<-chan error
}

// CloseWhenIdle closes d when nothing is under way on it.
func CloseWhenIdle(d *comm.Comm) { closing.add(d) }

func (f *freed) add(d *comm.Comm) {
	over := door.Of[comm.Request](d).CloseWhenIdle()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(over <-chan error) bool { return len(over) > 0 })
	f.all = append(f.all, over)
}

// wait waits until all are closed, or ctx ends.
func (f *freed) wait(ctx context.Context) {
	f.mu.Lock()
	all := f.all
	f.all = nil
	f.mu.Unlock()
	for _, over := range all {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}
