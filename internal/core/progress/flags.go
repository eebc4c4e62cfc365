package progress

import (
	"context"
	"sync/atomic"

	"gompi/internal/world"
)

// A flag is a word that another rank stores, for which a goroutine waits. Every poll looks at all
// flags. Before a rank sleeps it arms the transports, and then looks once more: a member that
// stores a flag later sees that the rank sleeps, and rings its doorbell.
type flag struct {
	w    *Waiter
	word *atomic.Uint64
	want uint64
}

// AwaitFlag is Await for a flag: w becomes ready when word is at least want.
func (p *Engine) AwaitFlag(ctx context.Context, w *Waiter, word *atomic.Uint64, want uint64) error {
	p.flags = append(p.flags, flag{w, word, want})
	err := p.Await(ctx, w)
	for i := range p.flags {
		if p.flags[i].w == w {
			p.flags = append(p.flags[:i], p.flags[i+1:]...)
			break
		}
	}
	return err
}

// LookAtFlags makes the Waiters ready whose flags are set, and returns their number. The Source
// calls LookAtFlags in Poll and, last, in Arm.
func (p *Engine) LookAtFlags() (n int) {
	for i := range p.flags {
		if f := &p.flags[i]; !f.w.Ready() && f.word.Load() >= f.want {
			p.MakeReady(f.w)
			n++
		}
	}
	return n
}

// drainPolls is a number of polls sufficient to read all frames of ranks that have left: a full
// ring takes half that number. Later frames come from ranks that keep sending.
const drainPolls = 1024

// Drain reads the frames that have arrived from all ranks.
func (p *Engine) Drain() {
	for polls := 0; p.cfg.Source.Poll(world.None) > 0 && polls < drainPolls; polls++ {
	}
}
