package shmcoll

import (
	"math/bits"
	"time"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/mem"
	"gompi/internal/ways"
)

// Members choose how a call moves its data: by plain copies around the L2 buffers, by any of
// mem.Copies around the large buffers, or by the kernel from vector to vector. A ways.Chooser
// chooses for all calls of a kind and of similar length, on each member: all members count the same
// calls, and note the time of the slowest member, which they exchange in the next such call. So all
// take the same way. The ways combine operands in the same order.

// A choice is the choice for calls of a kind and of similar length.
type choice struct {
	ways.Chooser
	took time.Duration // the time of the timed call on this member, 0 if the call has failed
}

// choices are by kind, nil before the first call of a kind, by form, and by the length of the
// vector as a power of two.
type choices [calls.Count]*[forms][classes]choice

// classes are lengths of less than 2 KiB, 4 KiB, and so on; the last are of 2 GiB and more.
const classes = 22

// A form is a set of ways.
type form int

const (
	inOneStep  form = iota // around either buffer
	inChunks               // around the large buffers, between two members also the L2 buffers
	orByKernel             // as inChunks, or by the kernel

	forms
)

// aroundL2 returns 1 if the first way of calls of a form is around the L2 buffers, else 0. Chunks
// of one root are slow there (1 MiB of bcast between two cores: 134 us around 64 KiB, 71 around 1
// MiB). If members exchange the buffers, chunks are fast (np=2 near on an AMD EPYC 25/17, 64 KiB
// around the large and the L2 buffers: allgather 6.3 and 5.2 us).
func (c *Collectives) aroundL2(f form, k calls.Kind) int {
	if f == inOneStep || c.Size() == 2 && !k.Rooted() {
		return 1
	}
	return 0
}

// A timing is of a call that is timed.
type timing struct {
	of    *choice // nil if not timed
	start time.Time
}

// end notes the duration of the call.
func (t *timing) end() {
	if t.of != nil {
		t.of.took = max(time.Since(t.start), 1)
	}
}

// chooseCopy chooses how a call of p copies to bounce buffers, which may be the large ones.
func (c *Collectives) chooseCopy(p *path.Path, o *call.Call, r *run) error {
	if r.chosen {
		return nil
	}
	f := inChunks
	if p.Algorithm == path.OneStep {
		f = inOneStep
	}
	_, err := c.choose(path.KernelCopy{}, f, o, r)
	return err
}

// choose sets the way of a call, the same on all members, as k says at first, and reports whether
// it is by the kernel. A timing begins when all members have begun the call.
func (c *Collectives) choose(k path.KernelCopy, f form, o *call.Call, r *run) (byKernel bool, err error) {
	bytes, l2 := c.bytes(o, r), c.aroundL2(f, o.Kind)
	switch {
	case k.First && !k.Tries:
		c.large = true // if a vector is out of reach
		return true, nil
	case c.paths.Oversubscribed() && bytes < sharedFrom:
		c.large = l2 == 0
		return false, nil
	}
	ofKind := &c.choices[o.Kind]
	if *ofKind == nil {
		*ofKind = new([forms][classes]choice)
	}
	x := &(*ofKind)[f][min(bits.Len(uint(bytes>>11)), classes-1)]
	switch {
	case x.IsNew():
		x.Chooser = ways.New(pace(k, f, bytes, l2+len(mem.Copies)))
	case x.Waits():
		if err := c.exchangeTime(x); err != nil {
			return false, err
		}
	}
	way, times := x.Next()
	if times {
		if err := c.Barrier(); err != nil {
			return false, err
		}
		x.took, r.timing = 0, timing{x, time.Now()}
	}
	if c.large, c.way = way >= l2, max(way-l2, 0); c.way < len(mem.Copies) {
		return false, nil
	}
	c.way = 0 // if a vector is out of reach
	return true, nil
}

// sharedFrom is the length of the shortest vector with a choice where ranks share processors: there
// a timing begins and ends with context switches, of some microseconds each (np=4 on two
// processors, plain copies and measured, far: alltoall of 16 KiB 47 and 23 us, reduce of 1 MiB 1195
// and 296; but near, gather of 4 KiB b2b 1.7 and 2.6).
const sharedFrom = 8 << 10

// lap is the bytes around a large buffer.
const lap = 2 << 20

// pace returns the pace of calls of so many bytes, which may go through bounce buffers in so many
// ways. In the first lap a buffer is new, and in no cache of the others. After some calls by the
// kernel the buffers have left the caches.
func pace(k path.KernelCopy, f form, bytes, copied int) ways.Pace {
	calls := lap / max(bytes, 1)
	p := ways.Pace{Ways: int8(copied), First: int16(4 + min(calls, 1000)), Every: 64, Warm: 2}
	if f == orByKernel {
		p.Ways, p.Warm = p.Ways+1, int16(min(calls, 32))
	}
	if k.First {
		p.At = int8(copied)
	}
	return p
}

// exchangeTime exchanges the time of the timed call.
func (c *Collectives) exchangeTime(x *choice) error {
	const size = int(unsafe.Sizeof(x.took))
	s, err := c.Exchange((*[size]byte)(unsafe.Pointer(&x.took))[:], true)
	if err != nil {
		return err
	}
	slowest, failed := x.took, false
	for j := range c.Size() {
		took := *(*time.Duration)(unsafe.Pointer(unsafe.SliceData(c.Payload(j, s, 0, size))))
		slowest, failed = max(slowest, took), failed || took == 0
	}
	if failed {
		x.Lost()
	} else {
		x.Note(int64(slowest))
	}
	return nil
}
