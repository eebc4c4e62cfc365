package progress

import "time"

// A Class is how soon an operation that nobody waits for needs a driver.
type Class uint8

const (
	None     Class = iota // never
	Deferred              // after grace
	Pending               // at once
)

// operations counts those of each Class that have begun and not ended.
type operations struct {
	deferred, pending int
	overdue           bool        // deferred ones have waited for so long that they count as pending
	graceTimer        *time.Timer // made once
	inGrace           bool        // graceTimer runs
}

// grace is how long deferred operations do without a driver. They are receives of eager size:
// their messages are sent without being asked for, and a program that posts some mostly waits
// for them soon. To put the background where it hears of them and to wake it costs more than
// they do (window of 64 times 8 bytes inside a host: 0.11 us a message, 0.27 where the background
// is put to listen at once). A synchronous send to one of them waits for so long if its receiver
// computes.
const grace = time.Millisecond

// Begin counts an operation, for which there is a driver until End.
func (p *Engine) Begin(c Class) {
	switch c {
	case Deferred:
		p.deferred++
	case Pending:
		p.pending++
	}
}

// End undoes Begin, with the same Class.
func (p *Engine) End(c Class) {
	switch c {
	case Deferred:
		if p.deferred--; p.deferred == 0 {
			p.overdue = false
		}
	case Pending:
		p.pending--
	}
}

// startGrace begins the grace of deferred operations that have no driver.
func (p *Engine) startGrace() {
	switch {
	case p.deferred == 0 || p.inGrace:
		return
	case p.graceTimer == nil:
		p.graceTimer = time.AfterFunc(grace, p.endGrace)
	default:
		p.graceTimer.Reset(grace)
	}
	p.inGrace = true
}

// endGrace makes them overdue if there is no driver by now.
func (p *Engine) endGrace() {
	p.Lock()
	defer p.Unlock()
	p.inGrace = false
	if p.deferred > 0 && p.driver == nil {
		p.overdue = true
		p.PassDrive()
	}
}
