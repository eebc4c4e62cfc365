package ddp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gompi/comm"
)

// WriteTrace writes what Trace has kept, of all ranks, to rank 0's w, for chrome://tracing or
// ui.perfetto.dev. It is collective; the other ranks' w is not used. All ranks get the same error.
//
// Each rank is a process of three threads. "steps" shows each step: the computation before Finish,
// and the exposed communication in it, which is what that did not overlap. "communication" shows
// each bucket, from when it is its turn until it is averaged. "program" shows the Spans. Ranks'
// clocks are compared by messages, so that times fit to the half of a round trip.
func (d *DDP) WriteTrace(ctx context.Context, w io.Writer) error {
	if d.trace == nil {
		return errors.New("ddp: WriteTrace: want the option Trace")
	}
	shift, err := clockShift(ctx, d.c, d.trace.since)
	if err != nil {
		return fmt.Errorf("ddp: WriteTrace: %w", err)
	}
	name := fmt.Sprintf("rank %d on %s", d.c.Rank(), d.c.Host(d.c.Rank()))
	own, err := json.Marshal(d.trace.events(d.c.Rank(), name, shift))
	if err != nil {
		return fmt.Errorf("ddp: WriteTrace: %w", err)
	}
	all, err := gatherBytes(ctx, d.c, own)
	if err != nil {
		return fmt.Errorf("ddp: WriteTrace: %w", err)
	}
	return OnRankZero(ctx, d.c, func() error { return joinEvents(w, all) })
}

// joinEvents writes one list of the ranks' lists of events.
func joinEvents(w io.Writer, lists [][]byte) error {
	_, err := io.WriteString(w, `{"displayTimeUnit":"ms","traceEvents":[`)
	for i, list := range lists {
		if i > 0 && err == nil {
			_, err = io.WriteString(w, ",\n")
		}
		if err == nil {
			_, err = w.Write(list[1 : len(list)-1]) // without brackets
		}
	}
	if err == nil {
		_, err = io.WriteString(w, "]}\n")
	}
	if err != nil {
		return fmt.Errorf("ddp: WriteTrace: %w", err)
	}
	return nil
}

// A traceEvent is one of Chrome's trace event format.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: complete, M: metadata
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Begin float64        `json:"ts"` // microseconds
	Dur   float64        `json:"dur"`
	Args  map[string]any `json:"args,omitempty"`
}

// The threads of a rank.
const (
	stepThread = iota
	communicationThread
	programThread
)

// events returns what the tracer has kept, with shift added to all times.
func (t *tracer) events(rank int, process string, shift time.Duration) []traceEvent {
	l := &eventList{rank: rank, shift: shift}
	l.meta("process_name", 0, "name", process)
	l.meta("process_sort_index", 0, "sort_index", rank)
	for thread, name := range []string{"steps", "communication", "program"} {
		l.meta("thread_name", thread, "name", name)
		l.meta("thread_sort_index", thread, "sort_index", thread)
	}
	var done time.Duration // of the last bucket
	for i := range t.steps {
		s := &t.steps[(t.oldest+i)%len(t.steps)]
		l.span(stepThread, fmt.Sprintf("step %d", s.step), s.begin, s.end, nil)
		l.span(stepThread, "computation", s.begin, s.finish, nil)
		l.span(stepThread, "exposed communication", s.finish, s.end, nil)
		for n, b := range s.buckets {
			if b.done == 0 {
				continue // nothing was averaged
			}
			begin := max(b.start, done)
			done = max(begin, b.done)
			l.span(communicationThread, fmt.Sprintf("bucket %d", n), begin, done, map[string]any{
				"step": s.step, "bytes": b.bytes, "parameters": b.params, "queued us": micros(begin - b.start)})
		}
		l.spans(s.spans)
	}
	l.spans(t.now.spans)
	return l.events
}

type eventList struct {
	rank   int
	shift  time.Duration
	events []traceEvent
}

func (l *eventList) meta(name string, thread int, key string, value any) {
	l.events = append(l.events, traceEvent{Name: name, Phase: "M", PID: l.rank, TID: thread, Args: map[string]any{key: value}})
}

func (l *eventList) span(thread int, name string, begin, end time.Duration, args map[string]any) {
	l.events = append(l.events, traceEvent{name, "X", l.rank, thread, micros(begin + l.shift), micros(end - begin), args})
}

func (l *eventList) spans(spans []spanTimes) {
	for _, s := range spans {
		l.span(programThread, s.name, s.begin, s.end, nil)
	}
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// clockShift returns what has to be added to this rank's clock to make it rank 0's: rank 0 asks
// each rank for its time some times, and believes the fastest answer.
func clockShift(ctx context.Context, c *comm.Comm, clock func() time.Duration) (time.Duration, error) {
	const rounds, tag = 8, 0
	var ask, answer, shift [1]int64
	shifts := make([]int64, c.Size())
	for peer := 1; peer < c.Size(); peer++ {
		best := time.Duration(1 << 62)
		for range rounds {
			switch c.Rank() {
			case 0:
				begin := clock()
				if _, err := comm.Sendrecv(ctx, c, peer, tag, ask[:], peer, tag, answer[:]); err != nil {
					return 0, err
				}
				if took := clock() - begin; took < best {
					best, shifts[peer] = took, int64(begin+took/2)-answer[0]
				}
			case peer:
				if _, err := comm.Recv(ctx, c, 0, tag, ask[:]); err != nil {
					return 0, err
				}
				answer[0] = int64(clock())
				if err := comm.Send(ctx, c, 0, tag, answer[:]); err != nil {
					return 0, err
				}
			}
		}
	}
	err := comm.Scatter(ctx, c, 0, shifts, shift[:])
	return time.Duration(shift[0]), err
}

// gatherBytes returns every rank's data on rank 0.
func gatherBytes(ctx context.Context, c *comm.Comm, data []byte) ([][]byte, error) {
	counts := make([]int, c.Size())
	if err := comm.Allgather(ctx, c, []int{len(data)}, counts); err != nil {
		return nil, err
	}
	var flat []byte
	if c.Rank() == 0 {
		total := 0
		for _, n := range counts {
			total += n
		}
		flat = make([]byte, total)
	}
	if err := comm.Gatherv(ctx, c, 0, data, flat, counts, nil); err != nil || c.Rank() != 0 {
		return nil, err
	}
	var all [][]byte
	for _, n := range counts {
		all, flat = append(all, flat[:n]), flat[n:]
	}
	return all, nil
}
