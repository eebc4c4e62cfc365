package progress

import "slices"

// Functions of a program in C, such as the operators of reductions, run on threads of the program,
// while these are in calls of gompi: the program may have a single thread, which computes
// meanwhile, or keep state per thread. An operation in the background hands such a function over,
// and waits. A goroutine called by a thread of the program runs the function: in any Await, or in a
// test. So a wait in an operation does not make another of the rank's operations wait in vain.

// A callback is a function of the program that a background operation hands over to be called.
type callback struct {
	call func()
	over chan struct{}
}

// Callback returns after a goroutine called by a thread of the program has called f. Other
// goroutines use Callback, without the lock.
func (p *Engine) Callback(f func()) {
	c := callback{f, make(chan struct{})}
	p.Lock()
	p.callbacks = append(p.callbacks, c)
	p.offer()
	p.Unlock()
	<-c.over
}

// offer wakes a goroutine to call the functions that are handed over. An awake goroutine looks for
// such functions before it sleeps, and offers them again when it returns.
func (p *Engine) offer() {
	if len(p.callbacks) == 0 {
		return
	}
	i := slices.IndexFunc(p.sleepers, func(w *Waiter) bool { return w.isCalled() && !w.ready })
	if i >= 0 {
		p.wake(p.sleepers[i])
	}
}

// callsBack reports whether w's goroutine is to call the functions that are handed over.
func (p *Engine) callsBack(w *Waiter) bool { return len(p.callbacks) > 0 && w.isCalled() }

// CallBack calls the functions that are handed over, on a goroutine that a thread of the program
// has called. The lock is held on entry and on return, and not meanwhile.
func (p *Engine) CallBack() {
	for len(p.callbacks) > 0 {
		c := p.callbacks[0]
		p.callbacks = slices.Delete(p.callbacks, 0, 1)
		p.offer() // the next to another goroutine
		p.unlockWhile(c.call)
		close(c.over)
	}
}
