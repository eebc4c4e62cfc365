package ddp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp/internal/trace"
)

// A traceEvent is an event of the file.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Begin float64        `json:"ts"`
	Dur   float64        `json:"dur"`
	Args  map[string]any `json:"args"`
}

// The threads of a rank.
const (
	stepThread = iota
	communicationThread
)

// traced runs steps on two ranks, whose backward takes 10 and 30 ms of a bubble's time, and returns
// rank 0's trace.
func traced(t *testing.T, steps int, opts Options) []traceEvent {
	t.Helper()
	opts.Trace = true
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, 5, 4, 3)
			params[0].Row = 5
			d, err := New(ctx, c, params, opts)
			if err != nil {
				return err
			}
			for range steps {
				if err := tracedStep(ctx, d, c.Rank()); err != nil {
					return err
				}
			}
			w := io.Writer(nil) // only rank 0 needs one
			if c.Rank() == 0 {
				w = &file
			}
			return errors.Join(d.WriteTrace(ctx, w), d.Close(ctx), d.Close(ctx)) // the second does nothing
		})
	})
	var trace struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(file.Bytes(), &trace); err != nil {
		t.Fatalf("%v in\n%s", err, &file)
	}
	return trace.TraceEvents
}

func tracedStep(ctx context.Context, d *DDP, rank int) error {
	end := d.Span("data")
	time.Sleep(time.Millisecond)
	end()
	d.ZeroGrad()
	for _, i := range []int{2, 1, 0} {
		time.Sleep(time.Duration(5 * time.Millisecond))
		if rank == 1 {
			time.Sleep(time.Duration(10 * time.Millisecond))
		}
		if i == 0 {
			d.ReadyRows(0, []int32{0}, make([]float32, 5))
		} else {
			d.Ready(i)
		}
	}
	return d.Finish(ctx)
}

// String states place and name of an event, with times in milliseconds.
func (e traceEvent) String() string {
	return fmt.Sprintf("%d/%d %s %g+%g", e.PID, e.TID, e.Name, e.Begin/1e3, e.Dur/1e3)
}

// In a bubble computation takes as long as the test says and communication no time, so all times
// are known: rank 0 waits for rank 1.
func TestTraceShowsWhatEachRankDid(t *testing.T) {
	var got []string
	for _, e := range traced(t, 2, Options{FirstBucketBytes: 4, BucketBytes: 4}) {
		if e.Phase == "X" {
			got = append(got, e.String())
		}
	}
	var want []string
	for step := range 2 {
		at := 46 * step
		want = append(want, fmt.Sprintf("0/2 data %d+1", at), fmt.Sprintf("1/2 data %d+1", at))
		for rank, computes := range []int{15, 45} {
			begin := at + 1
			want = append(want,
				fmt.Sprintf("%d/0 step %d %d+45", rank, step+1, begin),
				fmt.Sprintf("%d/0 computation %d+%d", rank, begin, computes),
				fmt.Sprintf("%d/0 exposed communication %d+%d", rank, begin+computes, 45-computes))
		}
		// Rank 0 starts its buckets 5, 10 and 15 ms after ZeroGrad. One is done, and the next's
		// turn, when rank 1 has started it, too.
		want = append(want,
			fmt.Sprintf("0/1 bucket 0 %d+10", at+6), fmt.Sprintf("0/1 bucket 1 %d+15", at+16),
			fmt.Sprintf("0/1 bucket 2 %d+15", at+31),
			fmt.Sprintf("1/1 bucket 0 %d+0", at+16), fmt.Sprintf("1/1 bucket 1 %d+0", at+31),
			fmt.Sprintf("1/1 bucket 2 %d+0", at+46))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("trace has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTraceNamesRanksThreadsAndParameters(t *testing.T) {
	events := traced(t, 1, Options{FirstBucketBytes: 4, BucketBytes: 100})
	var names []string
	args := map[string]map[string]any{}
	for _, e := range events {
		if strings.HasSuffix(e.Name, "_name") {
			names = append(names, fmt.Sprint(e.PID, e.TID, " ", e.Args["name"]))
		}
		if e.PID == 0 {
			args[e.Name] = e.Args
		}
	}
	want := []string{"0 0 rank 0 on localhost", "0 0 steps", "0 1 communication", "0 2 program",
		"1 0 rank 1 on localhost", "1 0 steps", "1 1 communication", "1 2 program"}
	if !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	for name, want := range map[string]string{
		"bucket 0": `map[bytes:12 parameters:"p2" queued us:0 step:1]`,
		"bucket 1": `map[bytes:16 parameters:"p1" queued us:5000 step:1]`,
		"bucket 2": `map[bytes:24 parameters:"p0" queued us:15000 step:1]`, // one row and its number
	} {
		if got := fmt.Sprint(args[name]); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
}

// However they are made, events of one thread are nested or apart, as viewers require. Hooks,
// rebuilt buckets and real time come together here.
func TestEventsOfAThreadAreNestedOrApart(t *testing.T) {
	var file bytes.Buffer
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 500, 400, 300, 200)
		params[1].Row = 10
		d, err := New(ctx, c, params, Options{Trace: true, Hook: meanHook{}, FirstBucketBytes: 4, BucketBytes: 1600})
		if err != nil {
			return err
		}
		for range 20 {
			d.ZeroGrad()
			for _, i := range []int{0, 2, 3} {
				d.Ready(i)
			}
			d.ReadyRows(1, []int32{3, 4}, make([]float32, 20))
			if err := d.Finish(ctx); err != nil {
				return err
			}
		}
		return errors.Join(d.WriteTrace(ctx, &file), d.Close(ctx))
	})
	var trace struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(file.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	threads := map[[2]int][]traceEvent{}
	for _, e := range trace.TraceEvents {
		if e.Phase == "X" {
			threads[[2]int{e.PID, e.TID}] = append(threads[[2]int{e.PID, e.TID}], e)
		}
	}
	for rank := range 3 {
		if n := len(threads[[2]int{rank, stepThread}]); n != 3*20 {
			t.Errorf("rank %d has %d events of steps, want 60", rank, n)
		}
		if n := len(threads[[2]int{rank, communicationThread}]); n < 3*20 {
			t.Errorf("rank %d has %d buckets, want at least 60", rank, n)
		}
	}
	for _, events := range threads {
		for i, a := range events {
			for _, b := range events[:i] {
				apart := a.Begin >= b.Begin+b.Dur || b.Begin >= a.Begin+a.Dur
				inside := a.Begin >= b.Begin && a.Begin+a.Dur <= b.Begin+b.Dur
				if !apart && !inside || a.Dur < 0 {
					t.Fatalf("%v and %v cross", a, b)
				}
			}
		}
	}
}

func TestTraceKeepsTheLastSteps(t *testing.T) {
	var steps []string
	for _, e := range traced(t, trace.Steps+3, Options{}) {
		if e.PID == 1 && strings.HasPrefix(e.Name, "step ") {
			steps = append(steps, e.Name)
		}
	}
	if n := len(steps); n != trace.Steps || steps[0] != "step 4" || steps[n-1] != fmt.Sprint("step ", trace.Steps+3) {
		t.Errorf("%d steps from %s to %s", n, steps[0], steps[n-1])
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTraceThatCannotBeWrittenFailsOnEveryRank(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 3), Options{Trace: true})
		if err != nil {
			return err
		}
		return errors.Join(wantError(d.WriteTrace(ctx, brokenWriter{}), "WriteTrace: disk full"), d.Close(ctx))
	})
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		d, err := New(ctx, c, testParams(0, 3), Options{})
		if err != nil {
			return err
		}
		d.Span("nothing is kept")()
		return errors.Join(wantError(d.WriteTrace(ctx, io.Discard), "want the option Trace"), d.Close(ctx))
	})
}
