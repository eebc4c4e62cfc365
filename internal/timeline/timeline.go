// Package timeline writes the actions of ranks in Chrome's trace event format, for ui.perfetto.dev
// and chrome://tracing.
package timeline

import (
	"encoding/json"
	"io"
	"math"
	"time"
)

// An event is an event of the format.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: complete, M: metadata, s and f: the ends of an arrow
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Begin float64        `json:"ts"` // microseconds
	Dur   float64        `json:"dur"`
	Args  map[string]any `json:"args,omitempty"`
	ID    int            `json:"id,omitempty"`
	Bind  string         `json:"bp,omitempty"` // e: an arrow ends at the slice around it
	Cat   string         `json:"cat,omitempty"`
}

// A List is the events of some ranks. All times of a file count from one moment. The zero List is
// empty.
type List struct{ events []event }

// Process names a rank. Viewers sort by rank.
func (l *List) Process(rank int, name string) {
	l.meta("process_name", rank, 0, "name", name)
	l.meta("process_sort_index", rank, 0, "sort_index", rank)
}

// Thread names a row of a rank. Viewers sort by number.
func (l *List) Thread(rank, thread int, name string) {
	l.meta("thread_name", rank, thread, "name", name)
	l.meta("thread_sort_index", rank, thread, "sort_index", thread)
}

func (l *List) meta(name string, rank, thread int, key string, value any) {
	l.events = append(l.events, event{Name: name, Phase: "M", PID: rank, TID: thread, Args: map[string]any{key: value}})
}

// Span is an action of a rank. Two Spans of a row do not overlap, unless one is inside the other.
func (l *List) Span(rank, thread int, name string, begin, end time.Duration, args map[string]any) {
	from, to := Micros(begin), Micros(end)
	l.events = append(l.events, event{Name: name, Phase: "X", PID: rank, TID: thread, Begin: from, Dur: to - from,
		Args: args})
}

// A Point is a moment inside a Span.
type Point struct {
	Rank, Thread int
	At           time.Duration
}

// Arrow is drawn from one Span to another. Each Arrow has an id of its own, from 1.
func (l *List) Arrow(id int, name string, from, to Point) {
	a := event{Name: name, Cat: name, ID: id}
	a.Phase, a.PID, a.TID, a.Begin = "s", from.Rank, from.Thread, Micros(from.At)
	l.events = append(l.events, a)
	a.Phase, a.PID, a.TID, a.Begin, a.Bind = "f", to.Rank, to.Thread, Micros(to.At), "e"
	l.events = append(l.events, a)
}

// JSON returns the list in the form for Write.
func (l *List) JSON() ([]byte, error) { return json.Marshal(l.events) }

// Write writes the file of some lists.
func Write(w io.Writer, lists ...[]byte) error {
	f := NewFile(w)
	for _, list := range lists {
		f.Add(list)
	}
	return f.Close()
}

// A File is written list by list.
type File struct {
	w     io.Writer
	err   error
	lists int
}

// NewFile begins a file.
func NewFile(w io.Writer) *File {
	f := &File{w: w}
	f.write([]byte(`{"displayTimeUnit":"ms","traceEvents":[`))
	return f
}

// Add adds a list.
func (f *File) Add(list []byte) {
	if len(list) <= len("[]") || string(list) == "null" {
		return
	}
	if f.lists++; f.lists > 1 {
		f.write([]byte(",\n"))
	}
	f.write(list[1 : len(list)-1]) // without brackets
}

// Close ends the file, and returns the first error of all.
func (f *File) Close() error {
	f.write([]byte("]}\n"))
	return f.err
}

func (f *File) write(data []byte) {
	if f.err == nil {
		_, f.err = f.w.Write(data)
	}
}

// Micros returns d in microseconds, rounded down to an eighth. Sums of eighths are exact, in a
// viewer's float64 as in its nanoseconds. So a slice ends where its last part ends: with a slightly
// earlier end, a viewer would take neither to be inside the other.
func Micros(d time.Duration) float64 { return math.Floor(float64(d)/125) / 8 }
