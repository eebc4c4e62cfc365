package coll

import (
	"gompi/comm/internal/call"
	"gompi/comm/internal/path"
	"gompi/internal/mem"
)

// A machine is the cost of messages, as in the LogGP model, and of hosts.
// Times are in seconds, per byte where it says so.
type machine struct {
	latency  float64 // from the last byte's departure to its arrival
	overhead float64 // of the processor, per message, at either end
	copying  float64 // of the processor, per byte, at either end
	perByte  float64 // of the wire, one way, between hosts
	reduce   float64 // of the processor, per byte
	perHost  int     // ranks of a host, 0: all
	cpus     int     // processors of a host, 0: as many as ranks
	sync     bool    // a step that sends ends no earlier than the messages arrive
}

const ns, us = 1e-9, 1e-6

// steps makes time count the steps that follow one another.
var steps = machine{latency: 1, sync: true}

// reduceChunk is how many bytes are reduced while the next are received.
const reduceChunk = 128 << 10

// wire returns the seconds that a byte spends on the wire from a to b.
func (m *machine) wire(a, b int) float64 {
	if m.perHost == 0 || a/m.perHost == b/m.perHost {
		return 0
	}
	return m.perByte
}

// send takes note of a message and returns when it arrives.
func (r *rank) send(to, size int) float64 {
	m, n := &r.w.machine, float64(size)
	wire := m.wire(r.me, to)
	start := r.clock + m.overhead
	r.work(m.overhead + n*m.copying)
	r.outFree = max(r.clock, max(start, r.outFree)+n*wire)
	r.outside += n * wire
	r.messages++
	r.bytes += int64(size)
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

// received waits for a message, and reduces it chunk by chunk if need be.
func (r *rank) received(p *parcel, reduce bool) {
	m, n := &r.w.machine, float64(p.b.Size())
	r.inFree = max(p.arrive, r.inFree+n*p.wire)
	work, tail := m.overhead+n*m.copying, m.overhead+min(n, reduceChunk)*m.copying
	if reduce {
		work += n * m.reduce
		tail += min(n, reduceChunk) * m.reduce
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
			out += r.outside
		}
		cpus := len(host)
		if w.cpus > 0 {
			cpus = min(cpus, w.cpus)
		}
		end = max(end, cpu/float64(cpus), out)
	}
	return end
}

// phantom is memory that has a size and no content, so that large calls of many
// ranks can be simulated. What a rank does with it costs the rank time.
type phantom struct {
	r      *rank
	next   uintptr
	copied float64 // r.cpu after the last Copy
}

func (s *phantom) Name() string { return "phantom" }

func (s *phantom) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	s.next += 1 << 40
	return mem.Device(s, s.next, t, n), nil
}

func (s *phantom) Free(mem.Buffer) {}

func (s *phantom) Copy(dst, _ mem.Buffer) error {
	s.r.work(float64(dst.Size()) * s.r.w.reduce)
	s.copied = s.r.cpu
	return nil
}

// reduce is the Func of a call.Op. To put the result elsewhere, Combine copies an operand first;
// a kernel does all at once, and the copy has cost what that costs.
func (s *phantom) reduce(acc, _ mem.Buffer) {
	if s.copied != s.r.cpu || s.copied == 0 {
		s.r.work(float64(acc.Size()) * s.r.w.reduce)
	}
}

// perform makes one call of k in phantom memory.
func (r *rank) perform(alg path.Algorithm, k call.Kind, l load, op call.Op) error {
	s := &phantom{r: r}
	op.Func = s.reduce
	buf := func(n int) mem.Buffer {
		b, _ := s.Alloc(mem.U8, n)
		return b
	}
	p := l.ranks
	n := l.elems * l.size
	switch k {
	case call.Barrier:
		return Barrier(r, alg)
	case call.Bcast:
		return Bcast(r, alg, l.root, buf(n))
	case call.Reduce:
		return Reduce(r, alg, l.root, buf(n), buf(n), op)
	case call.Allreduce:
		return Allreduce(r, alg, buf(n), buf(n), op)
	case call.ReduceScatter:
		return ReduceScatterBlock(r, alg, buf(n*p), buf(n), op)
	case call.Allgather:
		return Allgather(r, alg, buf(n), buf(n*p))
	case call.Gather:
		return Gather(r, alg, l.root, buf(n), buf(n*p))
	case call.Scatter:
		return Scatter(r, alg, l.root, buf(n*p), buf(n))
	case call.Alltoall:
		return Alltoall(r, alg, buf(n*p), buf(n*p))
	default:
		return Scan(r, alg, buf(n), buf(n), op)
	}
}
