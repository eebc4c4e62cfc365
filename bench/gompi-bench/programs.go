package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/bench/peers"
)

const programsUsage = `usage: gompi-bench programs [flags] [PROGRAM...]

Measures whole MPI programs on gompi's MPI libraries and on others in turn, round
after round: Debian's LAMMPS and HPCC, which run on any Open MPI, and a solver by
conjugate gradients, which each library's compiler builds. Prints times, of the
whole command and of what the program says of itself, and ratios: the time of the
fastest other library, divided by that of gompi's. All are measured if none is named.

`

// programs is the command line of programs.
type programs struct {
	*options
	chosen []program
	peers  []string
}

// A program is an MPI program to measure. It runs in a folder of its own.
type program struct {
	name, does string
	binary     string                   // of an installed program; "": built from c
	needs      string                   // the command that installs it
	c          string                   // file of package peers
	args       []string                 // always
	folder     string                   // whose files are copied to its own folder; "": none
	input      func(np int) (in []file) // files that it reads from its folder; nil: none
	output     string                   // file of results in its folder; "": standard output
	right      string                   // an expression that the output of a successful run matches
	figures    []programFigure
}

type file struct{ name, text string }

// A programFigure is a number in a program's output: a time in seconds, or a rate.
type programFigure struct {
	name, unit string
	mark       *regexp.Regexp // its group is the number
	scale      float64        // to the number in a row: microseconds, or a legible rate
	rate       bool           // more is better
}

// whole is the figure of every program: the time of the command that starts it.
var whole = programFigure{name: "command", unit: "s", scale: 1e6}

// examples is the folder of Debian's inputs for LAMMPS.
const examples = "/usr/share/lammps/examples"

func lammps(input, does string) program {
	return program{
		name: "lammps-" + input, does: does, binary: "lmp", needs: "apt-get install lammps lammps-examples",
		right:  "Total wall time",
		folder: filepath.Join(examples, input), args: []string{"-in", "in." + input, "-log", "none"},
		figures: []programFigure{seconds("loop", `Loop time of ([0-9.e+-]+) on`)},
	}
}

func cg(name, does, edge, solutions string) program {
	return program{name: name, does: does, c: "cg.c", args: []string{edge, solutions}, right: "solved, residual",
		figures: []programFigure{seconds("solve", `seconds=([0-9.e+-]+)`)}}
}

func seconds(name, mark string) programFigure {
	return programFigure{name, "s", regexp.MustCompile(mark), 1e6, false}
}

// rate is a rate of HPCC, in a thousandth of its unit.
func rate(name, unit, key string) programFigure {
	return programFigure{name, unit, regexp.MustCompile(`(?m)^` + key + `=([0-9.e+-]+)$`), 1e3, true}
}

// allPrograms returns all known programs.
func allPrograms() []program {
	return []program{
		lammps("melt", "4000 atoms in three dimensions, 250 steps"),
		lammps("friction", "atoms in two dimensions, 20000 steps: mostly latency"),
		lammps("peptide", "2004 atoms of a peptide in water, with FFTs of the far field, 300 steps"),
		{
			name: "hpcc", does: "HPL, PTRANS, RandomAccess and FFT among others, small", binary: "hpcc",
			needs: "apt-get install hpcc",
			input: hpccInput, output: "hpccoutf.txt", right: `(?m)^Success=1$`,
			figures: []programFigure{
				rate("HPL", "Gflop/s", "HPL_Tflops"), rate("PTRANS", "MB/s", "PTRANS_GBs"),
				rate("RandomAccess", "Mup/s", "MPIRandomAccess_GUPs"),
				rate("FFT", "Mflop/s", "MPIFFT_Gflops"),
			},
		},
		cg("cg-16", "conjugate gradients, 16^3 points a rank: mostly latency", "16", "20"),
		cg("cg-64", "the same with 64^3 points", "64", "2"),
	}
}

// hpccInput is a small problem, on a nearly square grid of processes.
func hpccInput(np int) []file {
	rows := 1
	for r := 2; r*r <= np; r++ {
		if np%r == 0 {
			rows = r
		}
	}
	const format = `HPL's input, whose first lines are free
(two of them)
HPL.out      output file
8            device
1            sizes
%-12d N
1            block sizes
80           NB
0            by rows
1            grids
%-12d P
%-12d Q
16.0         threshold
1            panel factorizations
2            right-looking
1            recursive stopping criteria
4            columns
1            panels in recursion
2            divisions
1            recursive factorizations
1            Crout
1            broadcasts
1            ring, modified
1            lookahead depths
1            depth
2            swapping: mix
64           threshold
0            L1 transposed
0            U transposed
1            equilibration
8            alignment
(a line between)
0            additional sizes of PTRANS
1200         N
0            additional block sizes
40           NB
`
	return []file{{"hpccinf.txt", fmt.Sprintf(format, hpccSize, rows, np/rows)}}
}

// hpccSize is the order of the matrix. HPCC derives its other sizes from this order.
const hpccSize = 1000

func parsePrograms(args []string) (programs, error) {
	all := append(slices.Clone(peers.OnGompi), "openmpi", "openmpi-debian", "mpich", "mpich-debian", "impi")
	p := programs{options: newOptions("programs", strings.Join(all, ","), "2,4", time.Minute,
		"run may take: a program on one library")}
	names, err := p.set.ParseAll(args)
	if err != nil {
		return p, err
	}
	known := allPrograms()
	for _, name := range names {
		i := slices.IndexFunc(known, func(k program) bool { return k.name == name })
		if i < 0 {
			var want []string
			for _, k := range known {
				want = append(want, k.name)
			}
			return p, fmt.Errorf("program %q: want some of %s", name, strings.Join(want, ", "))
		}
		p.chosen = append(p.chosen, known[i])
	}
	if names == nil {
		p.chosen = known
	}
	p.peers, err = peers.Parse(p.peerList)
	if p.hostfile != "" {
		err = errors.Join(err, errors.New("-hostfile: programs are measured on this machine alone"))
	}
	return p, errors.Join(err, p.read())
}

func programsMain(args []string, stdout, stderr io.Writer) int {
	p, err := parsePrograms(args)
	return p.main(err, programsUsage, p.run, stdout, stderr)
}

// A race is a program and the entrants that run it.
type race struct {
	program
	dir      string
	entrants []runner.Entrant
}

// run measures and writes the report of all measured figures, also after an interrupt.
func (p programs) run(ctx context.Context, stdout, progress io.Writer) error {
	var races []race
	for _, one := range p.chosen {
		r, err := p.enter(ctx, one)
		if err != nil {
			p.Absent = append(p.Absent, fmt.Sprintf("%s: %v", one.name, err))
			continue
		}
		races = append(races, r)
	}
	ended := p.compete(ctx, races, progress)
	return errors.Join(ended, p.report(races).Write(stdout, p.html))
}

// enter prepares the entrants that can run a program. One thread computes for each rank.
func (p *programs) enter(ctx context.Context, one program) (r race, err error) {
	r = race{program: one, dir: filepath.Join(p.Dir(), one.name)}
	run := peers.Program{C: one.c, Args: one.args}
	if one.binary != "" {
		if run.Installed, err = exec.LookPath(one.binary); err != nil {
			return r, fmt.Errorf("not installed (%s)", one.needs)
		}
	}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		return r, err
	}
	if one.folder != "" {
		if err := os.CopyFS(r.dir, os.DirFS(one.folder)); err != nil {
			return r, fmt.Errorf("%w (%s)", err, one.needs)
		}
	}
	here, absent := p.Enter(ctx, p.peers, run)
	for _, why := range absent {
		p.Absent = append(p.Absent, one.name+": "+why)
	}
	for _, e := range here {
		r.entrants = append(r.entrants, e.In(r.dir, "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"))
	}
	return r, nil
}

// compete runs the programs, each on all libraries in turn, round after round.
func (p *programs) compete(ctx context.Context, races []race, progress io.Writer) error {
	tooSlow := make(map[string]bool) // entrants that ran into the limit are not tried again
	for round := 1; round <= p.Rounds; round++ {
		for _, r := range races {
			for _, np := range p.NPs {
				for _, e := range r.entrants {
					which := fmt.Sprintf("%s, %s, np=%d", e.Name, r.name, np)
					if tooSlow[which] {
						continue
					}
					took, found, err := r.once(ctx, e, np, p.Limit)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					if err != nil {
						tooSlow[which] = errors.Is(err, runner.ErrTimeLimit)
						p.Miss(fmt.Sprintf("%s, round %d: %v", which, round, err))
						continue
					}
					fmt.Fprintf(progress, "round %d of %d: %s: %v\n", round, p.Rounds, which,
						took.Round(time.Millisecond))
					if err := p.take(round, r.program, e.Name, np, took, found); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// once runs the program, and returns its time and figures.
func (r race) once(ctx context.Context, e runner.Entrant, np int, limit time.Duration) (took time.Duration,
	found []float64, err error) {
	if r.output != "" {
		os.Remove(filepath.Join(r.dir, r.output)) // left by the previous run
	}
	if r.input != nil {
		for _, f := range r.input(np) {
			if err := os.WriteFile(filepath.Join(r.dir, f.name), []byte(f.text), 0o600); err != nil {
				return 0, nil, err
			}
		}
	}
	out, err := e.Start(np).Run(ctx, limit)
	if err != nil {
		return 0, nil, err
	}
	text := out.Stdout
	if r.output != "" {
		if text, err = os.ReadFile(filepath.Join(r.dir, r.output)); err != nil {
			return 0, nil, err
		}
	}
	found, err = r.read(string(text))
	return out.Took, found, err
}

// read returns the figures in a program's output.
func (p program) read(text string) (found []float64, err error) {
	if !regexp.MustCompile(p.right).MatchString(text) {
		return nil, fmt.Errorf("no %q in its output: want it", p.right)
	}
	for _, f := range p.figures {
		match := f.mark.FindStringSubmatch(text)
		if match == nil {
			return nil, fmt.Errorf("no %s in its output: want %s", f.name, f.mark)
		}
		x, err := strconv.ParseFloat(match[1], 64)
		if err != nil || x <= 0 {
			return nil, fmt.Errorf("%s is %q: want a number above 0", f.name, match[1])
		}
		found = append(found, x)
	}
	return found, nil
}

// all returns the figures, the command's first.
func (p program) all() []programFigure { return append([]programFigure{whole}, p.figures...) }

// label is the name of a figure in rows.
func (p program) label(f programFigure) string { return p.name + "/" + f.name }

// take records the figures of a run.
func (p *programs) take(round int, one program, impl string, np int, took time.Duration, found []float64) error {
	values := append([]float64{took.Seconds()}, found...)
	for i, f := range one.all() {
		x := values[i] * f.scale
		row := result.Row{Impl: impl, Op: one.label(f), NP: np, Median: x, Min: x, P99: x, Iters: 1}
		if err := p.Take(result.Sample{Round: round, Row: row}); err != nil {
			return err
		}
	}
	return nil
}
