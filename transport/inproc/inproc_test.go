package inproc_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

var _ transport.Parker = (*inproc.Parker)(nil)

func open(t *testing.T, sinks []transport.Sink) *transporttest.Net {
	w := inproc.NewWorld(len(sinks))
	n := &transporttest.Net{Kill: w.Kill}
	for i, s := range sinks {
		p := inproc.NewParker()
		n.Ends = append(n.Ends, transporttest.End{Transport: w.Transport(world.Rank(i), s, p), Parker: p})
	}
	return n
}

func TestConformance(t *testing.T) { transporttest.Run(t, open) }

func TestFaulty(t *testing.T) { transporttest.RunFaulty(t, open) }

// A counter is a sink that stores payloads over each other and counts.
type counter struct {
	frames, sent int
	memory       [8]byte
	lost         map[world.Rank]error
}

func (c *counter) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	c.frames++
	return mem.Bytes(c.memory[:min(h.Len, 8)]), 0
}
func (c *counter) Filled(uint64) mem.Buffer { return mem.Buffer{} }
func (c *counter) Sent(uint64, error)       { c.sent++ }
func (c *counter) Lost(peer world.Rank, err error) {
	if c.lost == nil {
		c.lost = make(map[world.Rank]error)
	}
	c.lost[peer] = err
}

// A rank is a driver as simple as can be.
type rank struct {
	counter
	transport.Transport
	parker *inproc.Parker
}

func ranks(n int) (*inproc.World, []*rank) {
	w := inproc.NewWorld(n)
	rs := make([]*rank, n)
	for i := range rs {
		rs[i] = &rank{parker: inproc.NewParker()}
		rs[i].Transport = w.Transport(world.Rank(i), &rs[i].counter, rs[i].parker)
	}
	return w, rs
}

func (r *rank) send(peer world.Rank, size int) bool {
	return r.Send(peer, &transport.Header{Kind: transport.Eager}, mem.Bytes(make([]byte, size)), 0)
}

// await sleeps until n frames have arrived.
func (r *rank) await(n int) {
	for r.frames < n {
		if r.Poll(-1) == 0 && r.Arm() {
			<-r.parker.C()
		}
	}
}

// A dissemination barrier: in round k, each rank tells the one 2^k further.
func barrier(rs []*rank) {
	var wg sync.WaitGroup
	for i, r := range rs {
		wg.Go(func() {
			for k, round := 1, 1; k < len(rs); k, round = 2*k, round+1 {
				r.send(world.Rank((i+k)%len(rs)), 8)
				r.await(round)
			}
		})
	}
	wg.Wait()
}

func TestThousandsOfRanksMeet(t *testing.T) {
	_, rs := ranks(4096)
	barrier(rs)
}

func TestRanksLiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, rs := ranks(50)
		barrier(rs)
		done := false
		go func() { // waits in vain
			rs[0].await(1000)
			done = true
		}()
		synctest.Wait() // returns only if that sleeps in a way the bubble knows
		if done {
			t.Error("a rank has got frames that no rank sent")
		}
		for range 1000 {
			rs[1].send(0, 8)
		}
		synctest.Wait()
		if !done {
			t.Error("a sleeping rank was not woken")
		}
	})
}

func TestSilentRankTakesLittleMemory(t *testing.T) {
	const n = 4096
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, rs := ranks(n)
	runtime.ReadMemStats(&after)
	per := (after.TotalAlloc - before.TotalAlloc) / n
	t.Logf("%d bytes per rank, sink and parker included", per)
	if per > 1000 {
		t.Errorf("%d bytes per rank that sends nothing, want at most 1000", per)
	}
	runtime.KeepAlive(rs)
}

func TestCopiesForASlowPeerAreBounded(t *testing.T) {
	_, rs := ranks(2)
	copied := 0
	for rs[0].send(1, 50_000) {
		if copied += 50_000; copied > 8<<20 {
			t.Fatal("8 MiB were copied for a rank that does not poll")
		}
	}
	if !rs[0].send(1, 0) {
		t.Error("a frame without payload was not taken")
	}
	rs[1].Poll(-1)
	rs[0].Poll(-1)
	if rs[0].sent != 1 {
		t.Errorf("%d buffers given back, want 1", rs[0].sent)
	}
	if !rs[0].send(1, 50_000) {
		t.Error("the peer has caught up, but nothing is copied any more")
	}
}

func TestRankMayTalkToItself(t *testing.T) {
	_, rs := ranks(1)
	rs[0].send(0, 8)
	rs[0].send(0, 1<<20)
	rs[0].Poll(-1)
	rs[0].Poll(-1)
	if rs[0].frames != 2 || rs[0].sent != 1 {
		t.Errorf("%d frames, %d buffers given back; want 2 and 1", rs[0].frames, rs[0].sent)
	}
	if !rs[0].Close(false) {
		t.Error("Close waits for nothing")
	}
}

func TestDeadRankLosesAllPeers(t *testing.T) {
	w, rs := ranks(3)
	rs[1].send(0, 1<<20)
	w.Kill(1)
	rs[1].Poll(-1)
	for _, peer := range []world.Rank{0, 2} {
		if err := rs[1].lost[peer]; !errors.Is(err, transport.ErrCut) {
			t.Errorf("the dead rank lost rank %d with %v, want %v", peer, err, transport.ErrCut)
		}
	}
	if rs[1].sent != 1 {
		t.Errorf("%d buffers given back, want 1", rs[1].sent)
	}
	rs[0].Poll(-1)
	if rs[0].frames > 1 || rs[0].lost[1] == nil {
		t.Errorf("rank 0: %d frames, lost %v", rs[0].frames, rs[0].lost)
	}
}

func BenchmarkOneWay(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"0", 0}, {"8", 8}, {"1K", 1 << 10}, {"64K", 64 << 10}, {"1M", 1 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			data := mem.Bytes(make([]byte, size.bytes))
			sink := &whole{memory: make([]byte, size.bytes)}
			w := inproc.NewWorld(2)
			from, to := w.Transport(0, &counter{}, inproc.NewParker()), w.Transport(1, sink, inproc.NewParker())
			h := transport.Header{Kind: transport.Eager}
			b.SetBytes(int64(size.bytes))
			b.ReportAllocs()
			for b.Loop() {
				from.Send(1, &h, data, 0)
				to.Poll(0)
				from.Poll(1)
			}
		})
	}
}

// whole is a sink that takes payloads whole.
type whole struct {
	counter
	memory []byte
}

func (w *whole) Arrive(_ world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	return mem.Bytes(w.memory[:h.Len]), 0
}
