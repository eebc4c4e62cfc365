package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gompi/internal/stats"
	"gompi/internal/timeline"
)

// WriteTrace writes the calls of all ranks, for viewers. Times start at the first recorded call.
func (c *Collector) WriteTrace(w io.Writer) error {
	t := tracer{file: timeline.NewFile(w), first: math.MaxInt64, streams: map[stream]*messages{}}
	for _, r := range c.ranks {
		for _, of := range r.traces {
			for _, e := range of.events {
				t.first = min(t.first, e.Begin)
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(c.ranks)) {
		if err := t.rank(i, c.ranks[i]); err != nil {
			return err
		}
	}
	if err := t.arrows(); err != nil {
		return err
	}
	return t.file.Close()
}

// A tracer writes a trace.
type tracer struct {
	file    *timeline.File
	first   int64
	streams map[stream]*messages
}

// A stream is messages that are received in sending order. Events do not record the communicator,
// so a stream may mix several.
type stream struct{ from, to, tag int }

// messages are the messages of a stream.
type messages struct {
	sent, received []message
	torn           bool // some messages are not in the trace
}

type message struct {
	at    timeline.Point
	bytes uint64
}

func (t *tracer) since(at int64) time.Duration { return time.Duration(at - t.first) }

// rank writes the calls of a rank. Calls of several goroutines may overlap: each goes into the
// first free row.
func (t *tracer) rank(i int, r *rank) error {
	var l timeline.List
	title := fmt.Sprintf("rank %d on %s", i, r.host)
	if r.dropped > 0 {
		title += fmt.Sprintf(" (%d calls before these were dropped)", r.dropped)
	}
	l.Process(i, title)
	var busy []int64 // by row, the end of its latest call
	for _, of := range r.traces {
		for _, e := range of.events {
			row := slices.IndexFunc(busy, func(until int64) bool { return until <= e.Begin })
			if row < 0 {
				row = len(busy)
				busy = append(busy, 0)
				l.Thread(i, row, "calls")
			}
			end := e.Begin + e.Duration
			busy[row] = end
			n := of.sites[e.Site]
			l.Span(i, row, n.op, t.since(e.Begin), t.since(end), argsOf(n, &e))
			t.note(i, row, n.op, &e, r.dropped > 0)
		}
	}
	list, err := l.JSON()
	if err == nil {
		t.file.Add(list)
	}
	return err
}

func argsOf(n name, e *stats.Event) map[string]any {
	args := map[string]any{}
	if n.place != "" {
		args["at"] = n.place
	}
	if e.Bytes > 0 {
		args["bytes"] = e.Bytes
	}
	if e.Peer >= 0 {
		args["rank"], args["tag"] = e.Peer, e.Tag
	}
	return args
}

// note notes the message of a call. Arrows go from the beginning of a send to the end of a
// blocking receive.
func (t *tracer) note(rank, row int, op string, e *stats.Event, torn bool) {
	if e.Peer < 0 {
		return
	}
	op = strings.ToLower(strings.TrimPrefix(op, "MPI_"))
	isSend := strings.HasSuffix(op, "send")
	m := t.stream(e.Peer, rank, e.Tag)
	if isSend || strings.Contains(op, "sendrecv") { // a sendrecv does both; this is its send
		m = t.stream(rank, e.Peer, e.Tag)
	}
	m.torn = m.torn || torn
	at := timeline.Point{Rank: rank, Thread: row, At: t.since(e.Begin)}
	switch {
	case isSend:
		m.sent = append(m.sent, message{at, e.Bytes})
	case op == "recv" || op == "mrecv":
		at.At = t.since(e.Begin + e.Duration)
		m.received = append(m.received, message{at, e.Bytes})
	default: // an Irecv's message is not known at the call
		m.torn, t.stream(e.Peer, rank, e.Tag).torn = true, true
	}
}

func (t *tracer) stream(from, to, tag int) *messages {
	s := stream{from, to, tag}
	if t.streams[s] == nil {
		t.streams[s] = &messages{}
	}
	return t.streams[s]
}

// arrows draws the messages of streams that the trace has completely, on both sides.
func (t *tracer) arrows() error {
	var l timeline.List
	id := 0
	keys := slices.SortedFunc(maps.Keys(t.streams), func(a, b stream) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.tag, b.tag))
	})
	for _, s := range keys {
		m := t.streams[s]
		if m.torn || len(m.sent) != len(m.received) {
			continue
		}
		for i := range m.sent {
			if m.sent[i].bytes == m.received[i].bytes && m.sent[i].at.At <= m.received[i].at.At {
				id++
				l.Arrow(id, "message", m.sent[i].at, m.received[i].at)
			}
		}
	}
	list, err := l.JSON()
	if err == nil {
		t.file.Add(list)
	}
	return err
}
