// Package output writes what the ranks of a job wrote to the screen and to files.
package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"gompi/mpirun/internal/ctl"
)

// A Writer writes what ranks wrote, in a goroutine of its own, so that a
// terminal or pager that stops taking it stops the ranks' writing and nothing
// else. Lines of ranks are never mixed. Its fields and Keep are for before the
// first Write.
type Writer struct {
	Tag   bool        // begin each line with its rank and stream
	Stamp bool        // begin each line with the time
	Fail  func(error) // told once of each file that cannot be written

	dir    string // of the files per rank, "" for none
	digits int    // of the largest rank
	now    func() time.Time

	screens map[ctl.Stream]*screen
	files   map[source]*os.File

	mu     sync.Mutex
	queue  []piece
	closed bool
	more   chan struct{} // holds one token while queue may have something
	done   chan struct{} // closed when everything is written
}

// A source is one stream of one rank.
type source struct {
	rank   int
	stream ctl.Stream
}

// A piece is output on its way, and whom to tell that it has been written; or
// what gompirun itself has to say, which goes to stderr on lines of its own.
type piece struct {
	*ctl.Output
	written func(bytes int)
	own     string
}

// A screen is where lines end up. Stdout and stderr are one if they lead to the
// same file.
type screen struct {
	w    io.Writer
	open source // whose line has begun and not ended; zero if none
	buf  []byte
}

// New returns a Writer to the screens of this process, until Close.
func New(stdout, stderr *os.File) *Writer {
	o := &Writer{
		now: time.Now, files: map[source]*os.File{}, Fail: func(error) {},
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	out := &screen{w: stdout}
	o.screens = map[ctl.Stream]*screen{ctl.Stdout: out, ctl.Stderr: {w: stderr}}
	if a, err := stdout.Stat(); err == nil {
		if b, err := stderr.Stat(); err == nil && os.SameFile(a, b) {
			o.screens[ctl.Stderr] = out
		}
	}
	go o.run() // until Close
	return o
}

// Keep has what each of so many ranks writes put into a file of its own, too, in
// the folder dir, which it makes.
func (o *Writer) Keep(dir string, ranks int) error {
	o.dir, o.digits = dir, len(strconv.Itoa(ranks-1))
	return os.MkdirAll(dir, 0o777)
}

// Write queues what a rank wrote; written is called, with its cost in credit, when
// it has been written. It does not block: agents send no more than they have credit
// for.
func (o *Writer) Write(m *ctl.Output, written func(bytes int)) {
	o.enqueue(piece{Output: m, written: written})
}

// Say queues a line of gompirun's own.
func (o *Writer) Say(line string) { o.enqueue(piece{own: line + "\n"}) }

func (o *Writer) enqueue(p piece) {
	o.mu.Lock()
	o.queue = append(o.queue, p)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// Close waits until everything is written.
func (o *Writer) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	<-o.done
}

func (o *Writer) run() {
	defer close(o.done)
	for range o.more {
		for {
			o.mu.Lock()
			queue, closed := o.queue, o.closed
			o.queue = nil
			o.mu.Unlock()
			for _, p := range queue {
				if p.Output == nil {
					o.screens[ctl.Stderr].put(source{}, []byte(p.own))
					continue
				}
				o.put(p.Output)
				p.written(ctl.Cost(len(p.Data)))
			}
			if len(queue) == 0 && closed {
				o.closeFiles()
				return
			}
			if len(queue) == 0 {
				break
			}
		}
	}
}

// put writes one piece to its screen and file.
func (o *Writer) put(m *ctl.Output) {
	from := source{m.Rank, m.Stream}
	if o.dir != "" {
		o.keep(from, m.Data)
	}
	s := o.screens[m.Stream]
	if s == nil || len(m.Data) == 0 {
		return
	}
	data := m.Data
	if o.Tag || o.Stamp {
		data = o.tagLines(nil, from, data, s.open == from)
	}
	s.put(from, data)
}

// put writes data, which is not empty, after ending a line that somebody else
// has begun.
func (s *screen) put(from source, data []byte) {
	s.buf = s.buf[:0]
	if s.open != from && s.open != (source{}) {
		s.buf = append(s.buf, '\n')
	}
	s.buf = append(s.buf, data...)
	s.w.Write(s.buf) // a broken pipe ends this process by its signal
	s.open = source{}
	if data[len(data)-1] != '\n' {
		s.open = from
	}
}

// tagLines appends data with a tag before each line, unless the first one goes on.
func (o *Writer) tagLines(b []byte, from source, data []byte, goesOn bool) []byte {
	for line := range bytes.Lines(data) {
		if !goesOn {
			if o.Stamp {
				b = o.now().AppendFormat(b, "2006-01-02T15:04:05.000 ")
			}
			if o.Tag {
				b = fmt.Appendf(b, "[%d]<%v>:", from.rank, from.stream)
			}
		}
		b = append(b, line...)
		goesOn = false
	}
	return b
}

// keep appends data to the rank's file, as it is.
func (o *Writer) keep(from source, data []byte) {
	f, known := o.files[from]
	if !known {
		name := fmt.Sprintf("rank-%0*d.%v", o.digits, from.rank, from.stream)
		var err error
		if f, err = os.OpenFile(filepath.Join(o.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666); err != nil {
			o.Fail(err)
			f = nil
		}
		o.files[from] = f
	}
	if f == nil {
		return
	}
	if _, err := f.Write(data); err != nil {
		o.Fail(err)
		f.Close()
		o.files[from] = nil
	}
}

func (o *Writer) closeFiles() {
	for _, f := range o.files {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil {
			o.Fail(err)
		}
	}
}
