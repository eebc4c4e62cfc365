package coll

// A machine is the cost of messages, as in the LogGP model, and of hosts.
// Times are in seconds, per byte where it says so.
type machine struct {
	latency  float64 // from the last byte's departure to its arrival
	overhead float64 // of the processor, per message, at either end
	perByte  float64 // of the wire, one way, between two ranks
	copying  float64 // of the processor, per byte, at either end
	reduce   float64 // of the processor, per byte
	wake     float64 // of the processor, per step that waits for a message
	perHost  int     // ranks of a host, 0: all
	cores    int     // of a host, 0: one for each rank
	sync     bool    // a step that sends ends no earlier than the messages arrive
}

// steps makes time count the steps that follow one another.
var steps = machine{latency: 1, sync: true}

// piece is how many bytes are reduced while the next are received.
const pieceBytes = 128 << 10

// send takes note of a message and returns when it arrives.
func (r *rank) send(to, size int) float64 {
	m, n := &r.w.machine, float64(size)
	r.work(m.overhead + n*m.copying)
	r.outFree = max(r.clock, r.outFree) + n*m.perByte
	r.messages++
	r.bytes += int64(size)
	if m.perHost > 0 && to/m.perHost != r.me/m.perHost {
		r.outside += int64(size)
	}
	return r.outFree + m.latency
}

// sent waits until the messages of a step have left.
func (r *rank) sent() {
	if len(r.sends) == 0 {
		return
	}
	r.clock = max(r.clock, r.outFree)
	if r.w.sync {
		for _, p := range r.sends {
			r.clock = max(r.clock, p.arrive)
		}
	}
}

// received waits for a message that arrives at the given time, and reduces it
// piece by piece.
func (r *rank) received(arrive float64, size int, reduce bool) {
	m, n := &r.w.machine, float64(size)
	r.inFree = max(arrive, r.inFree+n*m.perByte)
	work, tail := m.overhead+n*m.copying, m.overhead+min(n, pieceBytes)*m.copying
	if reduce {
		work += n * m.reduce
		tail += min(n, pieceBytes) * m.reduce
	}
	if r.inFree > r.clock {
		work += m.wake
		tail += m.wake
	}
	r.cpu += work
	r.clock = max(r.clock+work, r.inFree+tail)
}

// work lets the rank's processor work.
func (r *rank) work(seconds float64) {
	r.clock += seconds
	r.cpu += seconds
}

// time returns when all ranks are done: at the end of the longest chain of
// steps, or when the busiest host has done the work of its ranks and sent their
// bytes, whichever is later.
func (w *world) time() float64 {
	end := 0.0
	perHost := w.perHost
	if perHost == 0 {
		perHost = len(w.ranks)
	}
	for first := 0; first < len(w.ranks); first += perHost {
		var cpu, out float64
		host := w.ranks[first:min(first+perHost, len(w.ranks))]
		for _, r := range host {
			end = max(end, r.clock, r.outFree)
			cpu += r.cpu
			out += float64(r.outside) * w.perByte
		}
		cores := w.cores
		if cores == 0 {
			cores = len(host)
		}
		end = max(end, cpu/float64(cores), out)
	}
	return end
}
