package tcp

import (
	"fmt"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A counter is a sink that stores payloads and counts.
type counter struct {
	frames, sent int
	memory       []byte
	window       int // bytes; 0: the whole payload
	left         int
}

func (c *counter) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	c.left = int(h.Len)
	if c.left == 0 {
		c.frames++
	}
	return c.next(), 1
}

func (c *counter) next() mem.Buffer {
	n := c.left
	if c.window > 0 {
		n = min(n, c.window)
	}
	return mem.Bytes(c.memory[:n])
}

func (c *counter) Filled(uint64) mem.Buffer {
	n := c.next().Len()
	if c.left -= n; c.left > 0 {
		return c.next()
	}
	c.frames++
	return mem.Buffer{}
}

func (c *counter) Sent(uint64, error)     { c.sent++ }
func (c *counter) Lost(world.Rank, error) {}

// pair returns two connected ranks of one process.
func pair(b testing.TB, size int) (ts [2]*Transport, cs [2]*counter) {
	var cards [][]byte
	for i := range ts {
		cs[i] = &counter{memory: make([]byte, size)}
		tr, set := start(b, Config{Rank: world.Rank(i), Size: 2, SameHost: sameHost}, cs[i])
		b.Cleanup(func() { tr.Close(true); set.Close() })
		ts[i] = tr
		cards = append(cards, tr.Card())
	}
	for _, tr := range ts {
		tr.SetCards(cards)
	}
	ts[0].Send(1, &transport.Header{Kind: transport.Eager}, mem.Buffer{}, 0)
	for cs[1].frames == 0 {
		ts[0].Poll(1)
		ts[1].Poll(0)
	}
	cs[1].frames = 0
	return ts, cs
}

var benchSizes = []int{0, 8, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}

// One message from one end to the other, both driven by one goroutine: the processor's cost of a
// message, without the way between cores.
func BenchmarkOneWay(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ts, cs := pair(b, size)
			data := mem.Bytes(make([]byte, size))
			h := transport.Header{Kind: transport.Eager}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				done := ts[0].Send(1, &h, data, 0)
				sent, want := cs[0].sent, cs[1].frames+1
				for cs[1].frames < want || !done && cs[0].sent == sent {
					ts[1].Poll(0)
					if !done {
						ts[0].Poll(1)
					}
				}
			}
		})
	}
}

// Half the round trip between two goroutines that poll, each on its core. The
// best round counts: cores may be shared.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ts, cs := pair(b, size)
			data := mem.Bytes(make([]byte, size))
			best := time.Hour
			turns := func(me world.Rank) {
				h := transport.Header{Kind: transport.Eager}
				for i := range b.N {
					start := time.Now()
					if me == 0 {
						ts[0].Send(1, &h, data, 0)
					}
					for cs[me].frames <= i {
						ts[me].Poll(1 - me)
					}
					if me == 1 {
						ts[1].Send(0, &h, data, 0)
					} else {
						best = min(best, time.Since(start))
					}
				}
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				turns(1)
				for !ts[1].peers[0].out.Empty() {
					ts[1].Poll(0)
				}
			}()
			turns(0)
			<-done
			b.ReportMetric(float64(best.Nanoseconds())/2, "ns/best-half")
		})
	}
}

// Both send, then both receive. The best round counts.
func BenchmarkExchange(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			ts, cs := pair(b, size)
			data := mem.Bytes(make([]byte, size))
			best := time.Hour
			turns := func(me world.Rank) {
				h := transport.Header{Kind: transport.Eager}
				sent := cs[me].sent
				for i := range b.N {
					start := time.Now()
					if !ts[me].Send(1-me, &h, data, 0) {
						sent++
					}
					for cs[me].frames <= i || cs[me].sent < sent {
						ts[me].Poll(1 - me)
					}
					if me == 0 {
						best = min(best, time.Since(start))
					}
				}
			}
			done := make(chan struct{})
			go func() { turns(1); close(done) }()
			turns(0)
			<-done
			b.ReportMetric(float64(best.Nanoseconds()), "ns/best")
		})
	}
}
