package progress

import "time"

// A Class specifies how soon an operation needs a driver while no goroutine waits.
type Class uint8

const (
	None     Class = iota // never
	Deferred              // after grace
	Pending               // at once
)

// operations counts the operations of each Class between Begin and End.
type operations struct {
	deferred, pending int
	overdue           bool          // deferred operations have waited for so long that they count as pending
	graceTimer        *time.Timer   // made once
	inGrace           time.Duration // the time that graceTimer was started with; 0 while stopped
	ended             bool          // since the start of graceTimer there was a moment without deferred operations
	graceInVain       int           // how often in a row the grace has ended so, mostInVain at most
}

// grace is the time for which deferred operations do without a driver: receives that have no
// message yet, and sends that no receive has asked for. A program that posts them mostly waits for
// them soon, and parking the background for them and waking it costs more than the messages do
// (window of 64 times 8 bytes inside a host: 0.11 us a message, 0.27 where the background parks at
// once). The price: a send that is not eager waits for up to grace if either of its ranks computes.
//
// Waiting goroutines also do without a driver for the grace, if all have slept for as long, when
// the driver returns from its call: the driver mostly calls again soon, and each message for it
// would wake the parked goroutine (allreduce of 8 bytes over TCP by two ranks, while a goroutine of
// either waits for a message: 28 us, 8 with grace). The price: their waits last at most twice as
// long.
//
// Where deferred operations end sooner, each time, their grace doubles, up to 16 ms: a timer costs
// a thread that computes in C some 40 us of each ms (Irecv, Send and Wait of 32 KiB each 36 us,
// np=2 on an Intel Xeon: 15 us more than computing alone, 7 with doubling).
const grace = time.Millisecond

// mostInVain is the number of times that the grace of operations doubles.
const mostInVain = 4

// gracePolls take about as long as grace.
const gracePolls = 2048

// waitsLong reports whether w's goroutine has waited for about grace.
func (w *Waiter) waitsLong() bool {
	return w.polls >= gracePolls || !w.since.IsZero() && w.waitsLongAt(time.Now())
}

func (w *Waiter) waitsLongAt(now time.Time) bool {
	return w.polls >= gracePolls || !w.since.IsZero() && now.Sub(w.since) >= grace
}

// Begin counts an operation of class c. Until End a driver serves the operation, as soon as c says.
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
			p.overdue, p.ended = false, true
		}
	case Pending:
		p.pending--
	}
}

// startGrace starts the timer of a grace of d, unless a sooner end is set.
func (p *Engine) startGrace(d time.Duration) {
	switch {
	case p.inGrace > 0 && p.inGrace <= d:
		return
	case p.graceTimer == nil:
		p.graceTimer = time.AfterFunc(d, p.endGrace)
	default:
		p.graceTimer.Reset(d)
	}
	p.inGrace, p.ended = d, false
}

// endGrace makes deferred operations overdue, and finds a driver if there still is none.
// Operations posted after others ended get a grace of their own.
func (p *Engine) endGrace() {
	p.Lock()
	defer p.Unlock()
	p.inGrace = 0
	if p.ended {
		p.graceInVain = min(p.graceInVain+1, mostInVain)
	} else {
		p.graceInVain = 0
	}
	if p.driver == nil {
		p.overdue = p.deferred > 0 && !p.ended
		p.hand(p.successor())
	}
}
