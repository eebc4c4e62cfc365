package engine

import "time"

// An urgency is how soon somebody has to drive for a Request that nobody waits for.
type urgency uint8

const (
	none    urgency = iota
	calm            // counted in drivers.calm
	pending         // counted in drivers.pending
)

// grace is how long nobody need drive for receives of eager size: their messages are
// sent anyway, and a program that posts some mostly waits for them soon. A synchronous
// send to one of them waits for so long if its receiver computes (window of 64
// times 8 bytes inside a host: 0.11 us a message, 0.27 where the background is put to
// listen at once).
const grace = time.Millisecond

// outstanding has somebody drive for r until it is done.
func (e *Engine) outstanding(r *Request) {
	switch {
	case r.stage == complete:
	case r.stage == posted && r.buf.Size() <= e.cfg.Eager:
		r.urgency = calm
		e.calm++
	default:
		r.urgency = pending
		e.pending++
	}
}

// over undoes outstanding.
func (e *Engine) over(r *Request) {
	switch r.urgency {
	case calm:
		if e.calm--; e.calm == 0 {
			e.late = false
		}
	case pending:
		e.pending--
	}
	r.urgency = none
}

// tick begins the grace of calm receives that nobody drives for.
func (e *Engine) tick() {
	switch {
	case e.calm == 0 || e.ticking:
		return
	case e.timer == nil:
		e.timer = time.AfterFunc(grace, e.ticked)
	default:
		e.timer.Reset(grace)
	}
	e.ticking = true
}

// ticked ends it: receives that nobody drives for by now are late.
func (e *Engine) ticked() {
	e.lock()
	defer e.unlock()
	e.ticking = false
	if e.calm > 0 && e.driver == nil {
		e.late = true
		e.handOn()
	}
}
