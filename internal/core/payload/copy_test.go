package payload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// lender lends host memory and counts it, or fails.
type lender struct {
	lent, most int
	gate       chan struct{} // what Lend waits for, if not nil
	err        error
}

func (l *lender) Lend(_ mem.Space, n int) (mem.Buffer, error) {
	if l.gate != nil {
		<-l.gate
	}
	if l.err != nil {
		return mem.Buffer{}, l.err
	}
	l.lent++
	l.most = max(l.most, l.lent)
	return mem.Host.Alloc(mem.U8, n)
}

func (l *lender) Return(mem.Space, mem.Buffer) { l.lent-- }

// onDevice runs fn in a bubble with a Move whose buffer, of n bytes, is in a device's memory. All
// that was lent must have come back.
func onDevice(t *testing.T, n int, fn func(k *bench, l *lender, d *memtest.Device)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k, l, d := plain(), new(lender), memtest.NewDevice("gpu")
		k.v.Init(&k.lock, l)
		k.begin(k.Peer, Posted, nil, n)
		var err error
		if k.Buf, err = d.Alloc(mem.U8, n); err != nil {
			t.Fatal(err)
		}
		fn(k, l, d)
		if l.lent != 0 {
			t.Errorf("%d chunks are still lent", l.lent)
		}
	})
}

// do runs fn with the lock, and waits until the copying goroutine can do no more.
func (k *bench) do(fn func()) {
	k.lock.Lock()
	fn()
	k.lock.Unlock()
	synctest.Wait()
}

// ends fails the test unless a copy has ended so.
func (k *bench) ends(t *testing.T, want copyEnd) {
	t.Helper()
	select {
	case got := <-k.ended:
		if !errors.Is(got.err, want.err) || got.stranded != want.stranded {
			t.Errorf("the copy ended with %v, want %v", got, want)
		}
	default:
		t.Errorf("the copy has not ended, want %v", want)
	}
}

// A receiver asks for as many chunks as it has memory for, and for more as it stores them.
func TestAReceiverAsksForWhatItHasMemoryFor(t *testing.T) {
	const chunks = copyDepth + 2
	onDevice(t, chunks*StagingChunk, func(k *bench, l *lender, d *memtest.Device) {
		want := func(name, frames string) {
			t.Helper()
			if got := k.wire.Taken(); got != frames {
				t.Errorf("%s: asks by %q, want %q", name, got, frames)
			}
		}
		sent := bytes.Repeat([]byte("0123456789abcdef"), chunks*StagingChunk/16)
		receive := func(n int) {
			k.do(func() {
				for window, _ := k.Arrives(n); window.Size() > 0; window, _, _ = k.Filled() {
					copy(window.HostSlice(), sent)
				}
			})
		}
		k.do(func() { k.Fetch(other, 0) })
		want("at first", fmt.Sprintf("cts 9 token 5 chunks %d", copyDepth))
		if k.Expects(copyDepth*StagingChunk+1) || !k.Expects(copyDepth*StagingChunk) {
			t.Error("it does not expect what it has asked for alone")
		}
		receive(StagingChunk)
		want("one is stored", "cts 9 token 5 chunks 1")
		receive(StagingChunk)
		want("the next is stored", "cts 9 token 5") // all that is left
		receive((chunks - 2) * StagingChunk)
		want("all are stored", "")
		k.ends(t, copyEnd{})
		got := make([]byte, len(sent))
		if err := mem.Copy(mem.Bytes(got), k.Buf); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%v, or wrong bytes", err)
		}
		if l.most != copyDepth {
			t.Errorf("%d chunks were lent, want %d", l.most, copyDepth)
		}
	})
}

// A sender loads as much as it has memory for, before it is asked for more, and sends what it is
// asked for.
func TestASenderSendsTheChunksItIsAskedFor(t *testing.T) {
	onDevice(t, 3*StagingChunk, func(k *bench, _ *lender, _ *memtest.Device) {
		data := fmt.Sprint("data 9 bytes ", StagingChunk)
		k.Stage = Announced
		k.do(func() { cleared(1, 0, "").do(k) })
		if got := k.wire.Taken(); got != data || k.Stage != Announced {
			t.Errorf("asked for one: sends %q in stage %s", got, stageNames[k.Stage])
		}
		k.do(func() { cleared(0, 0, "").do(k) })
		if got := k.wire.Taken(); got != data+"; "+data || k.Stage != Leaving {
			t.Errorf("asked for all: sends %q in stage %s", got, stageNames[k.Stage])
		}
		k.ends(t, copyEnd{})
	})
}

// A copy that is stopped or fails gives back what it was lent, and its end follows once.
func TestCopiesEnd(t *testing.T) {
	onDevice(t, 20*StagingChunk, func(k *bench, _ *lender, _ *memtest.Device) {
		k.Stage, k.wire.holds = Announced, true
		k.do(func() { cleared(0, 0, "").do(k) })
		if n := strings.Count(k.wire.Taken(), "data"); n != copyDepth {
			t.Errorf("the transport holds %d chunks, want %d", n, copyDepth)
		}
		k.do(func() {
			if k.End(errLost) {
				t.Error("it ends while the device copies")
			}
		})
		k.ends(t, copyEnd{})
		if got := k.wire.Taken(); got != "forget 5" {
			t.Errorf("stopped: %q, want that the transport forgets it", got)
		}
		if !k.End(errLost) || k.Stage != Complete {
			t.Error("it does not end after the copy")
		}
	})
	onDevice(t, StagingChunk, func(k *bench, l *lender, _ *memtest.Device) {
		l.gate, l.err = make(chan struct{}), errLost
		k.do(func() { k.Fetch(other, 0) })
		k.do(func() { k.End(nil) })
		close(l.gate)
		synctest.Wait()
		k.ends(t, copyEnd{}) // it was stopped before it failed
	})
	onDevice(t, StagingChunk, func(k *bench, l *lender, _ *memtest.Device) {
		l.err = errLost
		k.do(func() { k.Fetch(other, 0) })
		k.ends(t, copyEnd{errLost, true}) // the sender waits to be asked
		if got := k.wire.Taken(); got != "forget 5" {
			t.Errorf("failed: %q, want that the transport forgets it", got)
		}
	})
	onDevice(t, 100, func(k *bench, _ *lender, d *memtest.Device) {
		d.Free(k.Buf) // so the copy fails
		k.do(func() { k.StoreEager(make([]byte, 100), 100) })
		select {
		case got := <-k.ended:
			if got.err == nil || got.stranded {
				t.Errorf("an eager message ended with %v, want an error that strands no sender", got)
			}
		default:
			t.Error("the copy has not ended")
		}
	})
}
