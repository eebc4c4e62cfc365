package monitor

import (
	"io"
	"net"
	"slices"
	"sync"
)

// tailSize is the most output of a job that is kept.
const tailSize = 64 << 10

// A Tail is the latest output of a job, as on its screens. Any goroutine may call its methods. A
// nil *Tail has none.
type Tail struct {
	mu   sync.Mutex
	end  int64         // bytes of output so far
	text []byte        // the latest, at least tailSize
	more chan struct{} // closed by the next Write; nil if nobody waits
}

// Write implements io.Writer.
func (t *Tail) Write(b []byte) (int, error) {
	if t == nil {
		return len(b), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end += int64(len(b))
	t.text = append(t.text, b[max(0, len(b)-tailSize):]...)
	if extra := len(t.text) - tailSize; extra > tailSize { // rarely, so that most output is copied once
		t.text = t.text[:copy(t.text, t.text[extra:])]
	}
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
	return len(b), nil
}

// since returns the output after the first from bytes, as far as it is kept, the bytes so far, and
// a channel that is closed when there is more.
func (t *Tail) since(from int64) (text []byte, end int64, more <-chan struct{}) {
	if t == nil {
		return nil, 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.more == nil {
		t.more = make(chan struct{})
	}
	n := min(t.end-from, tailSize, int64(len(t.text)))
	return slices.Clone(t.text[int64(len(t.text))-n:]), t.end, t.more
}

// Text returns the output that is kept.
func (t *Tail) Text() []byte {
	text, _, _ := t.since(0)
	return text
}

// stream writes the job's output to a client, and with follow what comes until the job's end. A
// client that reads slowly misses some.
func (s *Server) stream(conn net.Conn, follow bool) {
	io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
	gone := hungUp(conn)
	for from, over := int64(0), !follow; ; {
		text, end, more := s.tail.since(from)
		if _, err := conn.Write(text); err != nil || over {
			return
		}
		from = end
		select {
		case <-more:
		case <-s.ended:
			over = true
		case <-gone:
			return
		}
	}
}
