package mpirun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gompi/mpirun/internal/ctl"
)

// An output writes what ranks wrote, in a goroutine of its own, so that a
// terminal or pager that stops taking it stops the ranks' writing and nothing
// else. Lines of ranks are never mixed.
type output struct {
	tag, stamp bool
	dir        string // of the files per rank, "" for none
	digits     int    // of the largest rank
	now        func() time.Time

	screens map[ctl.Stream]*screen
	files   map[source]*os.File
	fail    func(error) // told once that a file cannot be written

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
	credit func(bytes int)
	own    string
}

// A screen is where lines end up. Stdout and stderr are one if they lead to the
// same file.
type screen struct {
	w    io.Writer
	open source // whose line has begun and not ended; zero if none
	buf  []byte
}

func newOutput(stdout, stderr *os.File) *output {
	o := &output{
		now: time.Now, files: map[source]*os.File{}, fail: func(error) {},
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	out := &screen{w: stdout}
	o.screens = map[ctl.Stream]*screen{ctl.Stdout: out, ctl.Stderr: {w: stderr}}
	if a, err := stdout.Stat(); err == nil {
		if b, err := stderr.Stat(); err == nil && os.SameFile(a, b) {
			o.screens[ctl.Stderr] = out
		}
	}
	go o.run() // until close
	return o
}

// write queues a piece. It does not block: agents send no more than they have
// credit for.
func (o *output) write(p piece) {
	o.mu.Lock()
	o.queue = append(o.queue, p)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// say queues a line of gompirun's own.
func (o *output) say(line string) { o.write(piece{own: line + "\n"}) }

// close waits until everything is written.
func (o *output) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	<-o.done
}

func (o *output) run() {
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
				p.credit(ctl.Cost(len(p.Data)))
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
func (o *output) put(m *ctl.Output) {
	from := source{m.Rank, m.Stream}
	if o.dir != "" {
		o.keep(from, m.Data)
	}
	s := o.screens[m.Stream]
	if s == nil || len(m.Data) == 0 {
		return
	}
	data := m.Data
	if o.tag || o.stamp {
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
func (o *output) tagLines(b []byte, from source, data []byte, goesOn bool) []byte {
	for line := range bytes.Lines(data) {
		if !goesOn {
			if o.stamp {
				b = o.now().AppendFormat(b, "2006-01-02T15:04:05.000 ")
			}
			if o.tag {
				b = fmt.Appendf(b, "[%d]<%v>:", from.rank, from.stream)
			}
		}
		b = append(b, line...)
		goesOn = false
	}
	return b
}

// keep appends data to the rank's file, as it is.
func (o *output) keep(from source, data []byte) {
	f, known := o.files[from]
	if !known {
		name := fmt.Sprintf("rank-%0*d.%v", o.digits, from.rank, from.stream)
		var err error
		if f, err = os.OpenFile(filepath.Join(o.dir, name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666); err != nil {
			o.fail(err)
			f = nil
		}
		o.files[from] = f
	}
	if f == nil {
		return
	}
	if _, err := f.Write(data); err != nil {
		o.fail(err)
		f.Close()
		o.files[from] = nil
	}
}

func (o *output) closeFiles() {
	for _, f := range o.files {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil {
			o.fail(err)
		}
	}
}
