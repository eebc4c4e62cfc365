// Package output writes the output of a job's ranks to the screen and to files.
package output

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/stdio"
)

// A Writer writes the output of ranks in goroutines of its own. A terminal, pager or FIFO that
// stops reading therefore stops the ranks' writing and nothing else. Lines of different ranks are
// never mixed. Its fields are set before the first Write. One goroutine calls its methods; any
// goroutine may call Log.
type Writer struct {
	Colour bool         // mark gompirun's own lines
	Tag    bool         // begin each line with its rank and stream
	Stamp  bool         // begin each line with the time
	Prefix string       // begin each line with this pattern
	Ranks  []plan.Label // what patterns expand to, by rank
	Shown  []int        // local ranks whose output goes to the screen; none: all
	Files  Files        // for the ranks' output
	Copy   io.Writer    // gets all that goes to the screens, without Colour; nil for none
	Fail   func(error)  // called once for each screen and file that cannot be written

	// Begun are the files, by path, that this Writer and Writers of earlier runs of the job write.
	// The Writer adds its own. Files of an earlier run are continued, all others emptied.
	Begun map[string]bool

	now func() time.Time

	screens map[ctl.Stream]*sink
	files   map[string]*sink  // by path
	paths   map[source]string // of the sources' files

	mu   sync.Mutex
	err  error // the first error passed to Fail
	last end   // of the screen with gompirun's own lines
}

// An end is the latest output of one rank on a screen, up to the output of another source.
type end struct {
	rank int
	text []byte
}

// endSize is the bytes kept of an end: more than the report of a failure shows.
const endSize = 8 << 10

// note notes output of a rank on the screen. A nil text stands for output that is not a rank's.
func (o *Writer) note(rank int, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last.rank != rank || text == nil {
		o.last = end{rank: rank}
	}
	o.last.text = append(o.last.text, text...)
	if extra := len(o.last.text) - endSize; extra > 0 {
		o.last.text = o.last.text[:copy(o.last.text, o.last.text[extra:])]
	}
}

// EndsWith reports whether the screen of gompirun's own lines ends with text, which a rank wrote.
func (o *Writer) EndsWith(rank int, text []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last.rank == rank && bytes.HasSuffix(bytes.TrimRight(o.last.text, "\n"), bytes.TrimRight(text, "\n"))
}

// A source is one stream of one rank.
type source struct {
	rank   int
	stream ctl.Stream
}

// New returns a Writer to the screens of this process, until Close. Stdout and stderr are one
// screen if they lead to the same file. A Writer that has been given up may still be in a write;
// another Writer's write to the same os.File waits for its end.
func New(stdout, stderr *os.File) *Writer {
	o := &Writer{now: time.Now, Fail: func(error) {}, Begun: map[string]bool{}, files: map[string]*sink{},
		paths: map[source]string{}}
	out := newScreen(o, stdio.File{File: stdout})
	o.screens = map[ctl.Stream]*sink{ctl.Stdout: out, ctl.Stderr: out}
	a, err1 := stdout.Stat()
	b, err2 := stderr.Stat()
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		o.screens[ctl.Stderr] = newScreen(o, stdio.File{File: stderr})
	}
	return o
}

// all returns the screens, each once, and the files.
func (o *Writer) all() []*sink {
	all := append(slices.Collect(maps.Values(o.files)), o.screens[ctl.Stdout])
	if errs := o.screens[ctl.Stderr]; errs != all[len(all)-1] {
		all = append(all, errs)
	}
	return all
}

// Write queues output of a rank. written is called with the output's cost in credit once the
// output has been written or given up. Write does not block: agents send no more than their
// credit.
func (o *Writer) Write(m *ctl.Output, written func(bytes int)) {
	screen := o.screens[m.Stream]
	if screen == nil {
		return
	}
	var to []*sink
	from := source{m.Rank, m.Stream}
	if path := o.path(from); path != "" {
		to = append(to, o.file(path))
	}
	if o.shows(from) {
		to = append(to, screen)
	}
	if len(to) == 0 {
		written(ctl.Cost(len(m.Data)))
		return
	}
	var left atomic.Int32
	left.Store(int32(len(to)))
	done := func() {
		if left.Add(-1) == 0 {
			written(ctl.Cost(len(m.Data)))
		}
	}
	if len(m.Data) > 0 && o.shows(from) && screen == o.screens[ctl.Stderr] {
		o.note(m.Rank, m.Data)
	}
	for _, s := range to {
		s.enqueue(piece{Output: m, done: done})
	}
}

// Terminals' codes (ECMA-48).
const bold, red, plain = "\x1b[1m", "\x1b[1;31m", "\x1b[0m"

var uncoloured = strings.NewReplacer(bold, "", red, "", plain, "")

// Log queues lines of gompirun's own for stderr. They begin on a line of their own.
func (o *Writer) Log(lines string) { o.log(lines, bold) }

// LogFailure is Log for the reason of the job's failure.
func (o *Writer) LogFailure(lines string) { o.log(lines, red) }

// own matches the prefix of gompirun's own lines. Other lines are quoted text, or a table.
var own = regexp.MustCompile(`(?m)^gompirun( -stats)?:`)

func (o *Writer) log(lines, how string) {
	if o.Colour {
		lines = own.ReplaceAllString(lines, how+"$0"+plain)
	}
	o.note(-1, nil)
	o.screens[ctl.Stderr].enqueue(piece{own: strings.TrimSuffix(lines, "\n") + "\n"})
}

// Flush returns a channel that is closed when all queued output is written or given up and the
// ranks' files are closed. No Write to these files may follow.
func (o *Writer) Flush() <-chan struct{} {
	flushed := make(chan struct{})
	var left sync.WaitGroup
	for _, s := range o.all() {
		left.Add(1)
		s.enqueue(piece{last: true, done: left.Done})
	}
	go func() { // until the last sink is flushed or given up
		left.Wait()
		close(flushed)
	}()
	return flushed
}

// GiveUp gives up screens and files after a number of consecutive calls have found the same write
// blocked. Queued and future output for them is dropped. The others are not affected.
func (o *Writer) GiveUp(looks int) {
	for _, s := range o.all() {
		s.giveUp(looks)
	}
}

// Lost returns the bytes of ranks' output that GiveUp has dropped, and the files concerned.
func (o *Writer) Lost() (bytes int64, files []string) {
	for _, s := range o.all() {
		n := s.dropped()
		if bytes += n; n > 0 && s.path != "" {
			files = append(files, s.path)
		}
	}
	slices.Sort(files)
	return bytes, files
}

// Err returns why a screen or file could not be written, nil if all could.
func (o *Writer) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *Writer) fail(err error) {
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	o.mu.Unlock()
	o.Fail(err)
}

// Close ends the Writer. Flush comes first.
func (o *Writer) Close() {
	for _, s := range o.all() {
		s.close()
	}
}

// tagLines appends data with a tag before each line, unless the first one continues.
func (o *Writer) tagLines(b []byte, from source, data []byte, continues bool) []byte {
	for line := range bytes.Lines(data) {
		if !continues {
			if o.Stamp {
				b = o.now().AppendFormat(b, "2006-01-02T15:04:05.000 ")
			}
			if o.Prefix != "" {
				b = append(b, o.rank(from.rank).Expand(o.Prefix, o.now())...)
			}
			if o.Tag {
				b = fmt.Appendf(b, "[%d]<%v>:", from.rank, from.stream)
			}
		}
		b = append(b, line...)
		continues = false
	}
	return b
}
