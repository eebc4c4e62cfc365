package ucx

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/ucx/internal/ucp"
)

// remoteOf returns b, registered memory of rank 1, for rank 0, and where it begins.
func remoteOf(t *testing.T, ranks [2]*rank, b []byte) (transport.Remote, uintptr) {
	t.Helper()
	key := ranks[1].Key(mem.Bytes(b))
	if key == nil {
		t.Fatal("registered memory has no key")
	}
	m := ranks[0].Remote(1, key)
	if m == nil {
		t.Fatal("there is no way to the peer's memory")
	}
	return m, uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// offloaded returns the ranks that have to poll for an access of rank 0: rank 0 alone, where a
// device does it. Else UCX's worker of rank 1 does.
func offloaded(ranks [2]*rank) []interface{ Poll(world.Rank) int } {
	if ranks[0].cfg.Transports == "" {
		return []interface{ Poll(world.Rank) int }{ranks[0]}
	}
	return []interface{ Poll(world.Rank) int }{ranks[0], ranks[1]}
}

// retry calls f until it has taken something, while the ranks poll that have to.
func retry(t *testing.T, ranks [2]*rank, f func() int) (n int) {
	drive(t, "room", func() bool { n = f(); return n > 0 }, offloaded(ranks)...)
	return n
}

// ended drives the ranks until rank 0 hears the end of the operation with a token.
func ended(t *testing.T, ranks [2]*rank, token uint64) error {
	t.Helper()
	drive(t, "the end", func() bool { _, over := ranks[0].sent[token]; return over }, offloaded(ranks)...)
	err := ranks[0].sent[token]
	delete(ranks[0].sent, token)
	return err
}

// Writes arrive where they should and nowhere else, reads return the content, and the peer does not
// poll meanwhile.
func TestMemoryOfAPeerThatDoesNotPollIsAccessed(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		const most = 3<<20 + 5
		theirs := ranks[1].registered(t, most+100)
		m, base := remoteOf(t, ranks, theirs)
		defer m.Close()
		for _, n := range []int{1, 8, 2048, 2049, 5000, ucp.ChunkSize, ucp.ChunkSize + 1, most} {
			src, dst := random(n), make([]byte, n)
			clear(theirs)
			want := append(append(make([]byte, 33), src...), make([]byte, most+100-33-n)...)
			for at := 0; at < n; {
				at += retry(t, ranks, func() int { return m.Write(base+33+uintptr(at), src[at:]) })
			}
			clear(src) // it is ours again
			m.Flush(1)
			if err := ended(t, ranks, 1); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(theirs, want) {
				t.Fatalf("%d bytes: wrong ones, or in the wrong place", n)
			}
			tokens := uint64(1)
			for at := 0; at < n; tokens++ {
				at += retry(t, ranks, func() int { return m.Read(base+33+uintptr(at), dst[at:], tokens+1) })
			}
			for ; tokens > 1; tokens-- {
				if err := ended(t, ranks, tokens); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(dst, want[33:][:n]) {
				t.Fatalf("%d bytes: not what is there was read", n)
			}
		}
	})
}

// Forgotten operations are stored nowhere and reported to nobody; operations under way to a rank
// that dies end with an error.
func TestAccessesThatAreForgottenOrCutEnd(t *testing.T) {
	eachUCX(t, func(t *testing.T, ranks [2]*rank) {
		theirs := ranks[1].registered(t, 1<<20)
		copy(theirs, random(1<<20))
		m, base := remoteOf(t, ranks, theirs)
		ranks[0].sent = map[uint64]error{}
		kept, forgotten := make([]byte, 5000), make([]byte, 5000)
		m.Read(base, forgotten, 2)
		ranks[0].Forget(1, 2)
		m.Read(base, kept, 3)
		if err := ended(t, ranks, 3); err != nil || !bytes.Equal(kept, theirs[:5000]) {
			t.Errorf("a read: %v, or wrong bytes", err)
		}
		m.Flush(4)
		if err := ended(t, ranks, 4); err != nil || len(ranks[0].sent) > 0 ||
			!bytes.Equal(forgotten, make([]byte, 5000)) {
			t.Errorf("behind a read that was forgotten: %v; ended are %v", err, ranks[0].sent)
		}
		ranks[1].release() // it answers nothing any more
		m.Write(base, kept)
		m.Flush(5)
		m.Read(base, kept, 6)
		ranks[0].Ended(1, transport.ErrCut)
		for _, token := range []uint64{5, 6} {
			if err := ended(t, ranks, token); !errors.Is(err, transport.ErrCut) {
				t.Errorf("to a rank that died: %v, want %v", err, transport.ErrCut)
			}
		}
		if n := m.Write(base, kept); n != 0 || m.Flush(7) || m.Read(base, kept, 8) != 0 ||
			ranks[0].Remote(1, []byte{1}) != nil {
			t.Errorf("memory of a rank that died is accessed: %d bytes", n)
		}
		m.Close()
	})
}
