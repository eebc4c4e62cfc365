package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gompi/bench/internal/measure"
	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
	"gompi/internal/cli"
)

const compareUsage = `usage: gompi-bench compare [flags] [OP...]

Measures gompi and its peers in turn, operation by operation and round after
round, and prints a table of ratios: the time of the fastest peer, divided by
gompi's. Cells that gompi loses are marked. Peers gompi-openmpi and gompi-mpich are
the C program of the other MPI libraries on gompi's own: they have a table of what a
call through them costs. OP is as for gompi-bench run; all but
a few are measured if none is given.

`

// compareOps are the default operations.
var compareOps = []string{"latency", "bw", "barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "allgather",
	"gather", "scatter", "alltoall", "scan"}

// A comparison is the command line of compare.
type comparison struct {
	*options
	ops            []string
	args           []string // of gompi-bench run and of the peers' programs
	inPlace, alloc bool
	busy           cli.Count // threads that compute beside all entrants
	peers          []string
}

func parseCompare(args []string) (comparison, error) {
	c := comparison{options: newOptions("compare", "openmpi,mpich,impi,openmpi-debian,mpich-debian,oneccl,gloo", "2,4",
		2*time.Minute, "run may take: an operation of one entrant, all sizes")}
	budget, sizes := cli.Duration(20*time.Millisecond),
		sizeList{8, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
	var what elements
	s := c.set
	c.overTransport()
	s.Var(&sizes, "sizes", "sizes to measure")
	what.declare(s)
	s.BoolVar(&c.inPlace, "inplace", false, "the in-place forms, of the operations that have one")
	s.BoolVar(&c.alloc, "alloc", false, "gompi's vectors are from comm.Alloc; the peers' are what they always are")
	s.Var(&c.busy, "busy", "how many threads of gompi-bench compute meanwhile, as loaders of data would")
	s.Var(&budget, "budget", "how long a cell is timed for, and again back to back")
	var err error
	if c.ops, err = s.ParseAll(args); err != nil {
		return c, err
	}
	if c.ops == nil {
		c.ops = compareOps
	}
	for _, op := range c.ops {
		if !slices.Contains(measure.Names(), op) {
			return c, fmt.Errorf("operation %q: want one of %s", op, strings.Join(measure.Names(), ", "))
		}
	}
	c.args = []string{"-format", "csv", "-sizes", sizes.String(), "-type", what.element, "-redop", what.operator,
		"-budget", budget.String()}
	if c.inPlace {
		c.args = append(c.args, "-inplace")
	}
	var errPeers error
	c.peers, errPeers = peers.Parse(c.peerList)
	err = errors.Join(c.read(), c.even(), errPeers)
	switch {
	case err != nil || !slices.Contains(c.peers, peers.UCX):
	case !slices.Equal(c.NPs, []int{2}):
		err = errors.New("peer ucx: want -np 2")
	case !builtWithC(self()): // else gompi's ranks would use TCP
		err = fmt.Errorf("peer ucx: %s was built without C: make compare-ucx builds one that has UCX", self())
	}
	return c, err
}

func compareMain(args []string, stdout, stderr io.Writer) int {
	c, err := parseCompare(args)
	return c.main(err, compareUsage, c.run, stdout, stderr)
}

// run measures, prints progress for each cell, and writes the report of all measured cells, also
// after an interrupt.
func (c comparison) run(ctx context.Context, stdout, _ io.Writer) error {
	if err := c.On(ctx, c.hostNames, c.rshWords, c.NPs); err != nil {
		return err
	}
	ours := []string{self(), "run"}
	if c.alloc {
		ours = append(ours, "-alloc")
	}
	here, absent := c.Enter(ctx, c.peers, peers.Program{C: "mpibench.c", Python: "torchbench.py"})
	entrants := append([]runner.Entrant{c.Gompi(nil, ours...)}, here...)
	c.Absent = absent
	rest := compute(int(c.busy))
	if c.Hosts == nil { // the distance of this machine's processors does not affect a network
		c.Probe = func() runner.Probe {
			rest()
			defer func() { rest = compute(int(c.busy)) }()
			return runner.ProbeFlag()
		}
	}
	ended := c.Run(ctx, entrants, c.ops, c.args...)
	rest()
	return errors.Join(ended, c.report(entrants).Write(stdout, c.html))
}

// builtWithC reports whether a Go program was built with cgo.
func builtWithC(program string) bool {
	info, err := buildinfo.ReadFile(program)
	return err == nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
}

// compute keeps n threads busy until rest is called.
func compute(n int) (rest func()) {
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
	var over atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - n)
	}
}

// report returns the tables of times and ratios, and of means of ratios.
func (c comparison) report(entrants []runner.Entrant) *result.Report {
	when := func(so bool, text string) string {
		if so {
			return text
		}
		return ""
	}
	conditions := append(c.where(), when(c.inPlace, "in place"), when(c.alloc, "gompi's vectors are from comm.Alloc"),
		when(c.busy > 0, fmt.Sprintf("threads that compute meanwhile: %d", c.busy)))
	r := c.Report("gompi beside "+strings.Join(runner.Names(entrants[1:]), ", "), conditions...)
	r.Commands = c.Commands(entrants, c.args...)
	cells := result.Cells(c.Samples)
	ours, others := sides(entrants)
	r.Tables = []result.Table{ratioTable(cells, runner.Names(entrants), ours[0], others)}
	if len(ours) > 1 {
		r.Tables = append(r.Tables, libraryTable(cells, ours, others))
	}
	for _, name := range ours {
		r.Tables = append(r.Tables, meanTable(name, result.Means(cells, name, others...)))
	}
	r.Charts = timeCharts(cells, entrants)
	return r
}

// sides returns the names of the entrants on gompi, and of the others.
func sides(entrants []runner.Entrant) (ours, others []string) {
	for _, name := range runner.Names(entrants) {
		if name == measure.Impl || slices.Contains(peers.OnGompi, name) {
			ours = append(ours, name)
		} else {
			others = append(others, name)
		}
	}
	return ours, others
}

func ratioTable(cells []result.Cell, names []string, ours string, others []string) result.Table {
	lines := [][]string{slices.Concat([]string{"op", "np", "size", "state"}, names, []string{"ratio", "ratio b2b"})}
	for _, c := range cells {
		line := cellColumns(c)
		for _, name := range names {
			cell := result.Missing
			if r, ok := c.Rows[name]; ok {
				cell = result.Time(r.Median) + " / " + result.Time(r.B2B)
			}
			line = append(line, cell)
		}
		lines = append(lines, append(line, ratios(c, ours, others...)...))
	}
	return result.Table{Left: 1, Lines: lines,
		Title: "Times in us: the median of the rounds' medians / the median of the rounds' means back to back. The state says how near" +
			" to each other two processors were before and after the operation, and in how many rounds. The ratio is the time of the fastest peer, divided by gompi's."}
}

// cellColumns returns the columns that identify a cell.
func cellColumns(c result.Cell) []string {
	return []string{c.Op, strconv.Itoa(c.NP), result.Bytes(c.Bytes),
		strings.TrimSpace(fmt.Sprintf("%s x%d", c.State, c.Rounds))}
}

// ratios returns the ratios of both times.
func ratios(c result.Cell, ours string, others ...string) []string {
	return []string{result.Ratio(c.Ratio(ours, result.ByMedian, others...)),
		result.Ratio(c.Ratio(ours, result.ByB2B, others...))}
}

// libraryTable compares gompi's MPI libraries with gompi in a Go program, and with the peers.
func libraryTable(cells []result.Cell, ours, others []string) result.Table {
	lines := [][]string{{"op", "np", "size", "state"}}
	for _, name := range ours[1:] {
		lines[0] = append(lines[0], "gompi / "+name, "b2b", "peers / "+name, "b2b")
	}
	for _, c := range cells {
		line := cellColumns(c)
		for _, name := range ours[1:] {
			line = slices.Concat(line, ratios(c, name, ours[0]), ratios(c, name, others...))
		}
		lines = append(lines, line)
	}
	return result.Table{Left: 1, Lines: lines,
		Title: "C programs on gompi's MPI libraries: the time of gompi in a Go program, and that of the fastest peer, divided by the library's."}
}

func meanTable(ours string, means []result.Mean) result.Table {
	lines := [][]string{{"op", "np", "state", "cells", "mean ratio", "lost", "least", "mean ratio b2b", "lost",
		"least"}}
	of := func(r result.Ratios) []string {
		ok := r.Mean > 0
		return []string{result.Ratio(r.Mean, ok), strconv.Itoa(r.Lost), result.Ratio(r.Least, ok)}
	}
	for _, m := range means {
		lines = append(lines, slices.Concat([]string{m.Op, strconv.Itoa(m.NP), m.State, strconv.Itoa(m.Cells)},
			of(m.ByMedian), of(m.ByB2B)))
	}
	return result.Table{Left: 1, Lines: lines,
		Title: "Geometric means of the ratios of " + ours + " to the fastest peer:"}
}

// timeCharts returns charts of medians over sizes, for each operation, number of ranks and state.
func timeCharts(cells []result.Cell, entrants []runner.Entrant) (charts []result.Chart) {
	var chart *result.Chart
	for _, c := range cells {
		title := strings.TrimSpace(fmt.Sprintf("%s, %d ranks %s", c.Op, c.NP, c.State))
		i := slices.IndexFunc(charts, func(ch result.Chart) bool { return ch.Title == title })
		if c.Bytes == 0 {
			continue
		}
		if i < 0 {
			i, charts = len(charts), append(charts, result.Chart{Title: title, X: "bytes", Y: "us"})
		}
		chart = &charts[i]
		for _, e := range entrants {
			if r, ok := c.Rows[e.Name]; ok && r.Median > 0 {
				chart.Points = append(chart.Points, result.Point{Series: e.Name, At: float64(c.Bytes), Y: r.Median})
			}
		}
	}
	return slices.DeleteFunc(charts, func(ch result.Chart) bool { return len(ch.Points) == 0 })
}
