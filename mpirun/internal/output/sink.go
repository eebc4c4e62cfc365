package output

import (
	"io"
	"os"
	"sync"

	"gompi/internal/fifo"
	"gompi/mpirun/internal/ctl"
)

// chunk is the bytes of one write: a reader that takes as much is alive.
const chunk = 16 << 10

// A piece is output of a rank on its way to a sink, or a message of gompirun itself, or the mark
// after the last output, at which a file is closed.
type piece struct {
	*ctl.Output
	own  string
	last bool
	done func() // called once the piece has been written or dropped; may be nil
}

func (p *piece) finish() {
	if p.done != nil {
		p.done()
	}
}

// A sink is a screen, which shows whole lines of ranks, or a file, which gets output unchanged.
// One goroutine opens the file and writes the queued output. A blocked system call cannot always
// be interrupted. When the sink is given up, a second goroutine therefore takes over and drops
// the rest.
type sink struct {
	of   *Writer
	path string    // of a file, "" for a screen
	w    io.Writer // nil for a file that is not open
	file *os.File  // the same as w, nil for a screen

	open   source // source of an unfinished line on the screen, or zero
	buf    []byte
	failed bool // an error has been reported

	mu      sync.Mutex
	more    sync.Cond // signalled when queue, closed or givenUp changes
	queue   fifo.Queue[piece]
	current piece // being written
	left    int   // bytes of current
	busy    bool  // a system call is under way
	looks   int   // times that giveUp has seen this system call
	closed  bool
	givenUp bool
	lost    int64 // bytes of ranks that were dropped
}

// newScreen returns a sink that writes to w, until close.
func newScreen(of *Writer, w io.Writer) *sink {
	s := &sink{of: of, w: w}
	s.more.L = &s.mu
	go s.serve(false) // until close or giveUp
	return s
}

// newFile returns a sink that writes to a file, new unless continued, until close. Opening a FIFO
// blocks until a reader opens it.
func newFile(of *Writer, path string, continued bool) *sink {
	s := &sink{of: of, path: path}
	s.more.L = &s.mu
	go func() { // until close or giveUp
		s.openFile(continued)
		s.serve(false)
	}()
	return s
}

func (s *sink) enqueue(p piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.Push(p)
	s.more.Signal()
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Signal()
}

// giveUp gives the sink up when it sees the current system call for the most-th time. It counts
// calls of giveUp, not time: while this process was stopped, the reader may have been stopped,
// too.
func (s *sink) giveUp(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.givenUp || !s.busy {
		return
	}
	if s.looks++; s.looks < most {
		return
	}
	s.givenUp = true
	stuck := s.current
	if stuck.Output != nil {
		s.lost += int64(min(s.left, len(stuck.Data))) // tags are no loss
	}
	if s.file != nil {
		go s.file.Close() // ends a write to a FIFO; may block itself
	}
	go func() { // until close
		stuck.finish()
		s.serve(true)
	}()
}

func (s *sink) dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// serve handles the queue, in order, until the sink is closed or another goroutine has taken
// over. A sink that has been given up writes nothing.
func (s *sink) serve(givenUp bool) {
	for {
		p, ok := s.next(givenUp)
		if !ok {
			return
		}
		switch {
		case givenUp:
			s.drop(&p)
		case p.Output == nil && p.last:
			s.closeFile()
		case s.path != "":
			s.write(p.Data)
		default:
			s.show(&p)
		}
		if !s.finished(givenUp) {
			return
		}
		p.finish()
	}
}

// next waits for the next piece. There is none if the sink is closed or another goroutine has
// taken over.
func (s *sink) next(givenUp bool) (piece, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.queue.Empty() && !s.closed && s.givenUp == givenUp {
		s.more.Wait()
	}
	if s.queue.Empty() || s.givenUp != givenUp {
		return piece{}, false
	}
	s.current = s.queue.Pop()
	return s.current, true
}

// finished reports whether the sink still belongs to this goroutine.
func (s *sink) finished(givenUp bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp == givenUp
}

// drop counts lost bytes.
func (s *sink) drop(p *piece) {
	if p.Output == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost += int64(len(p.Data))
}

// show writes p to the screen.
func (s *sink) show(p *piece) {
	if p.Output == nil {
		s.put(source{}, []byte(p.own))
		return
	}
	from := source{p.Rank, p.Stream}
	data := p.Data
	if s.of.Tag || s.of.Stamp || s.of.Prefix != "" {
		data = s.of.tagLines(nil, from, data, s.open == from)
	}
	s.put(from, data)
}

// put writes data to the screen, after a line end if another source's line is unfinished.
func (s *sink) put(from source, data []byte) {
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
	switch {
	case s.of.Copy == nil:
	case from == (source{}): // gompirun's own, read later by programs, too
		uncoloured.WriteString(s.of.Copy, string(s.buf))
	default:
		s.of.Copy.Write(s.buf)
	}
	s.write(s.buf)
}

// write writes b, unless the sink is a file that is not open.
func (s *sink) write(b []byte) {
	for ; len(b) > 0 && s.w != nil; b = b[min(len(b), chunk):] {
		s.begin(len(b))
		_, err := s.w.Write(b[:min(len(b), chunk)]) // a broken pipe on a screen ends this process by its signal
		if !s.ended(err) {
			return
		}
	}
}

// openFile opens the sink's file, before the first piece is taken from the queue.
func (s *sink) openFile(continued bool) {
	s.begin(0)
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !continued {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(s.path, flags, 0o666)
	switch {
	case s.ended(err) && err == nil:
		s.file, s.w = f, f
	case err == nil:
		f.Close() // the sink has been given up
	}
}

// closeFile closes an open file. Later output for it is dropped.
func (s *sink) closeFile() {
	if s.file == nil {
		return
	}
	s.begin(0)
	if s.ended(s.file.Close()) {
		s.file, s.w = nil, nil
	}
}

// begin notes the beginning of a system call, with left bytes still to be written.
func (s *sink) begin(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.busy, s.looks = left, true, 0
}

// ended notes the end of a system call, and reports whether the sink is still in use. The first
// error is reported.
func (s *sink) ended(err error) bool {
	s.mu.Lock()
	s.busy = false
	givenUp := s.givenUp
	s.mu.Unlock()
	if err != nil && !s.failed && !givenUp {
		s.failed = true
		s.of.fail(err)
	}
	return !givenUp
}
