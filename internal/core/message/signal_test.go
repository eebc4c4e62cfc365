package message_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/mem"
	"gompi/transport"
)

// Nobody waits for a receive but by Signal: if it comes soon it is polled for at once, else when it
// has waited for a while.
func TestWhatIsSignalledSoonIsPolledForAtOnce(t *testing.T) {
	for _, soon := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e, s := scripted()
			ch := e.Open(1, nil)
			began, signal := time.Now(), make(chan struct{}, 1)
			r := ch.Irecv(1, 3, mem.Bytes(make([]byte, 8)))
			s.send(transport.Header{Kind: transport.Eager, Comm: 1, Tag: 3, Len: 8, Flags: uint8(mem.U8)})
			e.Signal(r, signal, soon)
			<-signal
			if took := time.Since(began); (took == 0) != soon {
				t.Errorf("soon: %v: the signal comes after %v", soon, took)
			}
			ch.Close()
			if err := e.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
