package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"gompi/bench/internal/result"
)

// An Entrant is an implementation and the start of its program.
type Entrant struct {
	Name, Version string   // Version is "" if unknown
	Lacks         []string // operations
	Start         func(np int, args ...string) Job
}

// With returns e with arguments that precede all others of its program.
func (e Entrant) With(args ...string) Entrant {
	start := e.Start
	e.Start = func(np int, more ...string) Job { return start(np, slices.Concat(args, more)...) }
	return e
}

// In returns e with a working folder and settings for its program.
func (e Entrant) In(dir string, env ...string) Entrant {
	start := e.Start
	e.Start = func(np int, args ...string) Job {
		job := start(np, args...)
		for i := range job {
			job[i].Dir, job[i].Env = dir, slices.Concat(job[i].Env, env)
		}
		return job
	}
	return e
}

// Called returns e by another name.
func (e Entrant) Called(name string) Entrant {
	e.Name = name
	return e
}

// Names returns the names of entrants.
func Names(entrants []Entrant) []string {
	var names []string
	for _, e := range entrants {
		names = append(names, e.Name)
	}
	return names
}

// A Contest measures entrants in turn, and keeps the samples.
type Contest struct {
	Rounds int
	NPs    []int         // numbers of ranks
	Limit  time.Duration // of one run: one operation of one entrant, all sizes
	Probe  func() Probe  // of the machine's state, before and after each run; nil: not probed

	Absent  []string // entrants that are not here, and why
	Samples []result.Sample

	progress io.Writer
	file     *os.File // gets every sample at once; nil: none
	misses   []string // runs that failed, and why
	probes   []Probe
	load     float64 // processors that others used before or after the runs, the larger number
	began    time.Time
}

// Begin begins a contest. progress gets a line for each cell and for each failure. Samples go to
// the file named csv, unless csv is "". Run also prints how many operations are done, and the time
// left.
func (c *Contest) Begin(progress io.Writer, csv string) (err error) {
	c.progress, c.began, c.load = progress, time.Now(), Load()
	if csv == "" {
		return nil
	}
	if c.file, err = os.Create(csv); err == nil {
		_, err = fmt.Fprintf(c.file, "# %s\n%s\n", Machine(), result.SampleHeader)
	}
	return err
}

// End ends the contest and closes its file.
func (c *Contest) End() error {
	c.load = max(c.load, Load())
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// Run measures operations of the entrants in turn, operation by operation, round after round, so
// that changes of the machine affect all entrants. args are flags for all programs. A run that
// fails is reported as missing, but its rows count. An error means that ctx has ended.
func (c *Contest) Run(ctx context.Context, entrants []Entrant, ops []string, args ...string) error {
	began, done, all := time.Now(), 0, c.Rounds*len(c.NPs)*len(ops)
	for round := 1; round <= c.Rounds; round++ {
		for _, np := range c.NPs {
			for _, op := range ops {
				if err := c.compete(ctx, round, np, op, entrants, args); err != nil {
					return err
				}
				done++
				fmt.Fprintf(c.progress, "%d of %d done, %v left\n", done, all, left(time.Since(began), done, all))
			}
		}
	}
	return nil
}

// left returns the time left if each remaining part takes as long as the average so far.
func left(took time.Duration, done, all int) time.Duration {
	return (took / time.Duration(done) * time.Duration(all-done)).Round(time.Second)
}

// compete runs one operation of all entrants, between two probes each.
func (c *Contest) compete(ctx context.Context, round, np int, op string, entrants []Entrant, args []string) error {
	probe := func() (p Probe) {
		if c.Probe != nil {
			p = c.Probe()
			c.probes = append(c.probes, p)
		}
		return p
	}
	before := probe()
	for _, e := range entrants {
		if slices.Contains(e.Lacks, op) {
			continue
		}
		out, err := e.Start(np, slices.Concat(args, []string{op})...).Run(ctx, c.Limit)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows, bad := result.ReadCSV(out.Stdout)
		if err == nil {
			err = bad
		}
		if err != nil {
			c.Miss(fmt.Sprintf("%s, %s, np=%d, round %d: %v", e.Name, op, np, round, err))
		}
		after, state := probe(), ""
		if c.Probe != nil {
			state = Between(before, after)
		}
		before = after
		for _, r := range rows {
			r.Impl = e.Name
			fmt.Fprintf(c.progress, "round %d of %d: %s, np=%d, %s of %s: %s us\n", round, c.Rounds, r.Impl, np, r.Op,
				result.Bytes(r.Bytes), result.Time(r.Median))
			if err := c.Take(result.Sample{Round: round, State: state, Row: r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Take records a sample, in the file at once, so that an interrupted contest keeps its rows.
func (c *Contest) Take(s result.Sample) error {
	c.Samples = append(c.Samples, s)
	if c.file == nil {
		return nil
	}
	_, err := fmt.Fprintln(c.file, s.CSV())
	return err
}

// Miss records a run that failed, and why.
func (c *Contest) Miss(text string) {
	c.misses = append(c.misses, text)
	fmt.Fprintln(c.progress, text)
}

// Report returns a report without tables: the machine, the conditions, and absent and failed runs.
// Empty conditions are left out.
func (c *Contest) Report(title string, conditions ...string) *result.Report {
	r := &result.Report{Title: title, Warning: c.warning(), Absent: c.Absent, Misses: c.misses}
	conditions = append([]string{Machine()}, conditions...)
	for _, f := range append(conditions, fmt.Sprintf("rounds, in turn: %d; %s, %v in all", c.Rounds,
		c.began.Format(time.DateOnly), time.Since(c.began).Round(time.Second))) {
		if f != "" {
			r.Conditions = append(r.Conditions, f)
		}
	}
	return r
}

// Commands returns the command lines of the entrants, for the largest number of ranks.
func (c *Contest) Commands(entrants []Entrant, args ...string) (lines []string) {
	for _, e := range entrants {
		lines = append(lines, fmt.Sprintf("%s %s: `%v`", e.Name, e.Version, e.Start(slices.Max(c.NPs), args...)))
	}
	return lines
}

// warning returns a reason why the figures may be unreliable, "" without one.
func (c *Contest) warning() string {
	busy := 0
	for _, p := range c.probes {
		if p.State() == Busy {
			busy++
		}
	}
	if busy == 0 && c.load < IdleLoad {
		return ""
	}
	return fmt.Sprintf("the machine was busy: other processes used %.1f of %d processors before or after the runs, and %d of %d probes during them were disturbed. Measure again when it is idle.",
		c.load, runtime.NumCPU(), busy, len(c.probes))
}
