package output

import (
	"io"
	"sync"
	"time"

	"gompi/mpirun/internal/ctl"
)

// chunk is how much is written at once: a reader that takes as much is alive.
const chunk = 16 << 10

// A piece is output on its way, and whom to tell that it has been written; or
// what gompirun itself has to say; or a mark that tells when it has been reached.
type piece struct {
	*ctl.Output
	written func(bytes int)
	own     string
	reached func()
}

// done tells that p has been written, or never will be.
func (p *piece) done() {
	if p.Output != nil {
		p.written(ctl.Cost(len(p.Data)))
	}
}

// A screen is where lines end up. One goroutine writes what is queued. A write
// that blocks cannot be ended; so when the screen is given up, a second goroutine
// takes the first one's place, and drops what the first would have written.
type screen struct {
	of *Writer
	w  io.Writer

	open   source // whose line has begun and not ended; zero if none
	buf    []byte
	failed bool // has been reported

	mu      sync.Mutex
	more    sync.Cond // signalled when queue, closed or givenUp changes
	queue   []piece
	current piece     // that is being written
	left    int       // bytes of it
	since   time.Time // when the write under way began; zero if none is
	closed  bool
	givenUp bool
	lost    int64 // bytes of ranks that were dropped
}

func newScreen(of *Writer, w io.Writer) *screen {
	s := &screen{of: of, w: w}
	s.more.L = &s.mu
	go s.serve(false) // until close or giveUp
	return s
}

func (s *screen) enqueue(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, p)
	s.more.Signal()
}

func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Signal()
}

// giveUp gives the screen up if the write under way has lasted for so long.
func (s *screen) giveUp(idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.givenUp || s.since.IsZero() || time.Since(s.since) < idle {
		return
	}
	s.givenUp = true
	stuck := s.current
	if stuck.Output != nil {
		s.lost += int64(min(s.left, len(stuck.Data))) // tags are no loss
	}
	go func() { // until close
		stuck.done()
		s.serve(true)
	}()
}

func (s *screen) dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// serve handles what is queued, in order, until the screen is closed or another
// goroutine has taken over. It writes nothing if the screen has been given up.
func (s *screen) serve(givenUp bool) {
	for {
		p, ok := s.next(givenUp)
		if !ok {
			return
		}
		if p.reached != nil {
			p.reached()
			continue
		}
		if p.Output != nil {
			s.of.keep(p.Output)
		}
		if givenUp {
			s.drop(&p)
		} else {
			s.show(&p)
		}
		if !s.finished(givenUp) {
			return
		}
		p.done()
	}
}

// next waits for the next piece. There is none when the screen is closed or
// another goroutine has taken over.
func (s *screen) next(givenUp bool) (piece, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed && s.givenUp == givenUp {
		s.more.Wait()
	}
	if len(s.queue) == 0 || s.givenUp != givenUp {
		return piece{}, false
	}
	s.current, s.queue[0] = s.queue[0], piece{}
	s.queue = s.queue[1:]
	return s.current, true
}

// finished reports whether what was taken from the queue is still this goroutine's.
func (s *screen) finished(givenUp bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp == givenUp
}

// drop counts what is lost.
func (s *screen) drop(p *piece) {
	if p.Output == nil || !s.of.shows(p.Stream) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost += int64(len(p.Data))
}

// show writes p to the screen.
func (s *screen) show(p *piece) {
	if p.Output == nil {
		s.put(source{}, []byte(p.own))
		return
	}
	if !s.of.shows(p.Stream) {
		return
	}
	from := source{p.Rank, p.Stream}
	data := p.Data
	if s.of.Tag || s.of.Stamp || s.of.Prefix != "" {
		data = s.of.tagLines(nil, from, data, s.open == from)
	}
	s.put(from, data)
}

// put writes data after ending a line that somebody else has begun.
func (s *screen) put(from source, data []byte) {
	if len(data) == 0 {
		return
	}
	s.buf = s.buf[:0]
	if s.open != from && s.open != (source{}) {
		s.buf = append(s.buf, '\n')
	}
	s.buf = append(s.buf, data...)
	s.open = source{}
	if data[len(data)-1] != '\n' {
		s.open = from
	}
	for b := s.buf; s.begin(len(b)); b = b[min(len(b), chunk):] {
		_, err := s.w.Write(b[:min(len(b), chunk)]) // a broken pipe ends this process by its signal
		if !s.ended() {
			return
		}
		if err != nil && !s.failed {
			s.failed = true
			s.of.fail(err)
		}
	}
}

// begin notes that so many bytes are about to be written, if there are any.
func (s *screen) begin(left int) bool {
	if left == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.since = left, time.Now()
	return true
}

// ended notes that a write has come to its end, and reports whether the screen has
// not been given up meanwhile.
func (s *screen) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
	return !s.givenUp
}
