package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
)

const launchUsage = `usage: gompi-bench launch [flags]

Measures jobs whose ranks start, meet and end, under gompirun and its peers in
turn: from start to finish, until a rank's first line, and inside init. Prints
times, ratios (that of the fastest peer, divided by gompirun's) and the peak memory
of a rank. With -hostfile
it measures on other hosts, beside logging in to all of them at the same time: no
launcher can be faster.

`

// A launch is the command line of launch.
type launch struct {
	*options
	peers, torchruns []string
	torchNP          []int
}

func parseLaunch(args []string) (launch, error) {
	all := append([]string{"openmpi", "openmpi-ob1", "mpich", "impi", "openmpi-debian", "mpich-debian", "srun"},
		peers.Torchruns...)
	l := launch{options: newOptions("launch", strings.Join(all, ","), "1,4,16,64", 30*time.Second, "job may take")}
	torchNP := "1,2,4"
	s := l.set
	s.StringVar(&torchNP, "torch-np", torchNP,
		"numbers of ranks of PyTorch scripts, which take 230 MB each; 0 for none")
	rest, err := s.Parse(args)
	switch {
	case err != nil:
		return l, err
	case len(rest) > 0:
		return l, fmt.Errorf("argument %q: want flags only", rest[0])
	}
	if torchNP != "0" {
		l.torchNP, err = numbers("-torch-np", torchNP)
	}
	names, errPeers := peers.Parse(l.peerList, peers.Torchruns...)
	for _, name := range names {
		if slices.Contains(peers.Torchruns, name) {
			l.torchruns = append(l.torchruns, name)
		} else {
			l.peers = append(l.peers, name)
		}
	}
	return l, errors.Join(err, errPeers, l.read())
}

func launchMain(args []string, stdout, stderr io.Writer) int {
	l, err := parseLaunch(args)
	return l.main(err, launchUsage, l.run, stdout, stderr)
}

// A figure is a measured property of a job. In rows, its name follows the program's.
type figure struct {
	name, title, unit string
	scale             float64 // from microseconds or kilobytes to the unit
	of                func(out runner.Outcome) float64
}

var (
	startToFinish = figure{"start_to_finish", "Start to finish", "ms", 1e-3,
		func(o runner.Outcome) float64 { return micros(o.Took) }}
	firstLine = figure{"first_line", "Until the first line of a rank", "ms", 1e-3,
		func(o runner.Outcome) float64 { return micros(o.First) }}
	insideInit  = figure{"init", "Inside init, of the slowest rank", "ms", 1e-3, printed(initMark, 1e3)}
	importTorch = figure{"import_torch", "Inside import torch, of the slowest rank", "ms", 1e-3,
		printed(importMark, 1e3)}
	peakMemory = figure{"peak_kb", "Peak resident memory of the largest rank", "MB", 1024 / 1e6, printed(peakMark, 1)}
)

func micros(d time.Duration) float64 { return d.Seconds() * 1e6 }

// printed returns the largest number that ranks print behind a mark, scaled.
func printed(mark string, scale float64) func(runner.Outcome) float64 {
	return func(o runner.Outcome) float64 { return scale * largest(string(o.Stdout), mark) }
}

// A group is the entrants that run the same program, gompirun first.
type group struct {
	name     string
	nps      []int
	figures  []figure
	entrants []runner.Entrant
}

// logins is the name of the entrant that only logs in to all hosts.
const logins = "logins"

// enter returns the groups of available entrants.
func (l *launch) enter(ctx context.Context) []group {
	ours := []string{self(), rankCommand}
	here, absent := l.Enter(ctx, l.peers, peers.Program{C: "mpihello.c"})
	l.Absent = absent
	hello := group{name: "hello", nps: l.NPs, figures: []figure{startToFinish, firstLine, insideInit, peakMemory},
		entrants: append([]runner.Entrant{l.Gompi(nil, ours...)}, here...)}
	if l.Hosts != nil {
		hello.entrants = append(hello.entrants,
			runner.Entrant{Name: logins, Start: func(int, ...string) runner.Job { return l.Hosts.Logins() }})
	}
	if len(l.torchNP) == 0 || len(l.torchruns) == 0 {
		return []group{hello}
	}
	python, version, err := l.Torch(ctx)
	if err != nil {
		l.Absent = append(l.Absent, fmt.Sprintf("torchrun: %v", err))
		return []group{hello}
	}
	script := []string{python, filepath.Join(l.Dir(), "torchhello.py")}
	var iface []string
	if l.Hosts != nil {
		iface = []string{"-x", "GLOO_SOCKET_IFNAME=" + l.Hosts.Iface}
	}
	torch := group{name: "torch", nps: l.torchNP,
		figures:  []figure{startToFinish, firstLine, importTorch, insideInit, peakMemory},
		entrants: []runner.Entrant{l.Gompi(iface, script...)}}
	for _, name := range l.torchruns {
		torch.entrants = append(torch.entrants, l.Torchrun(name, python, version))
	}
	return []group{hello, torch}
}

// run measures and writes the report of all measured figures, also after an interrupt.
func (l launch) run(ctx context.Context, stdout, progress io.Writer) error {
	if err := l.On(ctx, l.hostNames, l.rshWords, append(slices.Clone(l.NPs), l.torchNP...)); err != nil {
		return err
	}
	groups := l.enter(ctx)
	ended := l.jobs(ctx, groups, progress)
	return errors.Join(ended, l.report(groups).Write(stdout, l.html))
}

// jobs runs the entrants in turn, for each number of ranks, round after round.
func (l *launch) jobs(ctx context.Context, groups []group, progress io.Writer) error {
	for round := 1; round <= l.Rounds; round++ {
		for _, g := range groups {
			for _, np := range g.nps {
				for _, e := range g.entrants {
					out, err := e.Start(np).Run(ctx, l.Limit)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					if err != nil {
						l.Miss(fmt.Sprintf("%s, %s, np=%d, round %d: %v", e.Name, g.name, np, round, err))
						continue
					}
					fmt.Fprintf(progress, "round %d of %d: %s, %s, np=%d: %v\n", round, l.Rounds, e.Name, g.name, np,
						out.Took.Round(time.Millisecond))
					for _, f := range g.figures {
						if err := l.take(round, g.name+"/"+f.name, e.Name, np, f.of(out)); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// take records a figure. A value of 0 means none.
func (l *launch) take(round int, op, impl string, np int, value float64) error {
	if value <= 0 {
		return nil
	}
	return l.Take(result.Sample{Round: round,
		Row: result.Row{Impl: impl, Op: op, NP: np, Median: value, Min: value, P99: value, Iters: 1}})
}

// report has a table and a chart of each figure of each program.
func (l *launch) report(groups []group) *result.Report {
	r := l.Report("Jobs that start, meet and end", l.where()...)
	cells := result.Cells(l.Samples)
	for _, g := range groups {
		r.Commands = append(r.Commands, l.Commands(g.entrants)...)
		for _, f := range g.figures {
			t, c := f.show(g, cells)
			r.Tables = append(r.Tables, t)
			if len(c.Points) > 0 {
				r.Charts = append(r.Charts, c)
			}
		}
	}
	return r
}

// show returns a figure's table, a line for each number of ranks with all entrants and the ratio,
// and its chart.
func (f figure) show(g group, cells []result.Cell) (result.Table, result.Chart) {
	names := runner.Names(g.entrants)
	others := slices.DeleteFunc(slices.Clone(names[1:]), func(name string) bool { return name == logins })
	title := f.title + " (" + g.name + ")"
	chart := result.Chart{Title: title, X: "ranks", Y: f.unit}
	lines := [][]string{slices.Concat([]string{"np"}, names, []string{"ratio"})}
	for _, np := range g.nps {
		c := result.Find(cells, g.name+"/"+f.name, np)
		line := []string{strconv.Itoa(np)}
		for _, name := range names {
			line = append(line, in(c, name, f.scale))
			if y := c.Rows[name].Median * f.scale; y > 0 {
				chart.Points = append(chart.Points, result.Point{Series: name, At: float64(np), Y: y})
			}
		}
		lines = append(lines, append(line, result.Ratio(c.Ratio(names[0], result.ByMedian, others...))))
	}
	return result.Table{Title: title + ", " + f.unit + ":", Lines: lines}, chart
}

// in formats the time of impl in a cell, converted from microseconds.
func in(c result.Cell, impl string, scale float64) string {
	r, ok := c.Rows[impl]
	if !ok {
		return result.Missing
	}
	return result.Time(r.Median * scale)
}
