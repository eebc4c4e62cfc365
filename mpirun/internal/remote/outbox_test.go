package remote

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// Posted data is written in order, short and long pieces. Long pieces are not copied: hosts share
// data for all.
func TestAnOutboxKeepsOrderAndSharesWhatIsLong(t *testing.T) {
	r, w := io.Pipe()
	o := NewOutbox(Connected(w, r, nil))
	var want []byte
	post := func(b []byte) int {
		want = append(want, b...)
		return o.Post(b)
	}
	post([]byte("first")) // is being written, or about to be, while the others are posted
	begun := make([]byte, 1)
	if _, err := io.ReadFull(r, begun); err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("long "), 1<<20)
	post([]byte("a"))
	post([]byte("b"))
	post(big)
	post([]byte("c"))
	if n := post([]byte("d")); n != len(big)+4 {
		t.Errorf("%d bytes are queued, want %d", n, len(big)+4)
	}
	if last := o.queue[1]; &last[0] != &big[0] {
		t.Error("a long piece was copied")
	}
	got := make([]byte, len(want)-1)
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want[1:]) {
		t.Errorf("%v: what is written differs", err)
	}
	o.Flush(time.Minute)
	if n := o.Post(nil); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
