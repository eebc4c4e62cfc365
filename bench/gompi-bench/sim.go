package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gompi/bench/internal/result"
	"gompi/comm/sim"
	"gompi/internal/cli"
)

// A simConfig is the command line of sim.
type simConfig struct {
	machine  sim.Machine
	nps      []int
	sizes    sizeList
	algs     []string // empty: all
	tuning   string
	ops      []string
	form     string
	measured string // file
	fit      string // file
	svg      string // file
	set      *cli.Set
}

func simUsage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: gompi-bench sim [flags] OP...\n\n"+
		"Simulates collectives of as many ranks as one likes: gompi's algorithms over messages, and\n"+
		"hierarchical ones where several ranks share a host (ppn), in microseconds, with * at the one\n"+
		"that gompi chooses. OP is one of\n%s.\n"+
		"A size is the bytes of one rank's vector, or of the block of allgather, alltoall,\n"+
		"reduce_scatter, gather and scatter. gompi-bench sim start simulates the start of jobs.\n\n",
		strings.Join(sim.Ops(), ", "))
	fmt.Fprintf(&b, "A machine is a name (%s), or parameters, or both, with commas\nbetween, as cluster,rate=100gbit,ppn=4:\n\n", names(sim.Machines))
	for _, p := range sim.Parameters() {
		fmt.Fprintf(&b, "  %-16s %s (%s)\n", p.Name, p.Does, p.Want)
	}
	return b.String() + "\n"
}

func names(machines []sim.Machine) string {
	var all []string
	for _, m := range machines {
		all = append(all, m.Name)
	}
	return strings.Join(all, ", ")
}

// parseSim parses the command line. After an error, too, the config has its FlagSet.
func parseSim(args []string) (simConfig, error) {
	c := simConfig{set: cli.New("gompi-bench sim"), sizes: sizeList{8, 1 << 10, 64 << 10, 1 << 20}}
	var machine, np, algs string
	s := c.set
	s.StringVar(&machine, "machine", "network", "the network and its hosts: a name, and parameters")
	s.StringVar(&np, "np", "16", "numbers of ranks")
	s.Var(&c.sizes, "sizes", "sizes to simulate, as 8,1K,1M")
	s.StringVar(&algs, "algorithms", "", "those to simulate, as GOMPI_TUNE names them, with commas between (default all)")
	s.StringVar(&c.tuning, "tune", "", "rules and thresholds by which gompi chooses, as GOMPI_TUNE has them")
	s.StringVar(&c.measured, "measured", "",
		"file of rows of gompi-bench run -format csv: simulate those, and print both times")
	s.StringVar(&c.fit, "fit", "", "file of rows of gompi-bench run -format csv latency bw of two hosts: take the machine's latency, overhead, gap, rate and burst from them")
	s.StringVar(&c.form, "format", "table", "table or csv")
	s.StringVar(&c.svg, "svg", "", "file for a chart of the times, of one operation and number of ranks; with -measured of both times")
	var err error
	if c.ops, err = s.ParseAll(args); err != nil {
		return c, err
	}
	if c.machine, err = sim.Parse(machine); err != nil {
		return c, err
	}
	if c.nps, err = numbers("-np", np); err != nil {
		return c, err
	}
	if algs != "" {
		c.algs = strings.Split(algs, ",")
	}
	return c, c.check()
}

// mostSimulated bounds the simulated ranks: at this number a run takes an hour of a processor, and
// some GB.
const mostSimulated = 1 << 20

func (c *simConfig) check() error {
	switch {
	case !slices.Contains(result.Forms, c.form):
		return fmt.Errorf("-format %q: want %s", c.form, strings.Join(result.Forms, " or "))
	case c.measured != "" && len(c.ops) > 0:
		return fmt.Errorf("%s with -measured: want no operation, the file has them", strings.Join(c.ops, " "))
	case c.svg != "" && c.measured == "" && (len(c.ops) != 1 || len(c.nps) != 1):
		return fmt.Errorf("-svg %s: want one operation and one number of ranks", c.svg)
	case c.measured == "" && c.fit == "" && len(c.ops) == 0:
		return fmt.Errorf("no operation: want some of %s", strings.Join(sim.Ops(), ", "))
	}
	for _, np := range c.nps {
		if np > mostSimulated {
			return fmt.Errorf("-np %d: want at most %d", np, mostSimulated)
		}
	}
	found := map[string]bool{}
	for i, op := range c.ops {
		c.ops[i] = simulated(op)
		for _, np := range c.nps {
			algs, err := c.machine.Algorithms(sim.Call{Op: c.ops[i], Ranks: np, Tuning: c.tuning})
			if err != nil {
				return err
			}
			for _, a := range algs {
				found[a] = true
			}
		}
	}
	for _, a := range c.algs {
		if !found[a] && c.measured == "" {
			return fmt.Errorf("-algorithms %q: %s has none of that name", a, strings.Join(c.ops, ", "))
		}
	}
	return nil
}

// simulated returns the simulator's name of an operation: its name without "_".
func simulated(op string) string { return strings.ReplaceAll(op, "_", "") }

// simMain returns the exit status: 0, 1 after an error, 2 for invalid arguments.
func simMain(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "start" {
		return startMain(args[1:], stdout, stderr)
	}
	c, wrong := parseSim(args)
	if c.set.Answer(wrong, simUsage()+c.set.FlagUsages(), stdout) {
		return 0
	}
	if wrong != nil {
		return fail(stderr, "sim", 2, wrong)
	}
	if err := c.run(stdout); err != nil {
		return fail(stderr, "sim", 1, err)
	}
	return 0
}

func (c *simConfig) run(out io.Writer) error {
	if c.fit != "" {
		rows, err := readRows(c.fit)
		if err == nil {
			err = fitLinks(&c.machine, rows)
		}
		if err != nil {
			return fmt.Errorf("-fit %s: %w", c.fit, err)
		}
	}
	if c.measured != "" {
		rows, err := readRows(c.measured)
		if err != nil {
			return fmt.Errorf("-measured %s: %w", c.measured, err)
		}
		return c.compare(out, rows)
	}
	if c.form == "table" {
		fmt.Fprintf(out, "# machine %s\n", &c.machine)
	}
	w := result.NewWriter(out, c.form)
	var chart result.Chart
	for _, np := range c.nps {
		for _, op := range c.ops {
			if err := c.simulate(out, w, &chart, op, np); err != nil {
				return err
			}
		}
	}
	if c.svg != "" {
		if err := chart.File(c.svg); err != nil {
			return err
		}
	}
	if c.form == "csv" {
		return w.Close()
	}
	return nil
}

// simulate writes the times of a collective of np ranks, as a table or as CSV rows. A table's times
// are written as soon as they are known. The chosen algorithm has a second row, named gompi.
func (c *simConfig) simulate(out io.Writer, w *result.Writer, chart *result.Chart, op string, np int) error {
	*chart = result.Chart{Title: fmt.Sprintf("%s, %d ranks, simulated", op, np), X: "bytes", Y: "us"}
	algs, err := c.machine.Algorithms(sim.Call{Op: op, Ranks: np, Tuning: c.tuning})
	if err != nil {
		return err
	}
	if c.algs != nil {
		algs = slices.DeleteFunc(algs, func(a string) bool { return !slices.Contains(c.algs, a) })
	}
	table := c.form == "table"
	if table {
		fmt.Fprintf(out, "\n# %s, %d ranks, simulated (us)\n%12s", op, np, "size (B)")
		for _, a := range algs {
			fmt.Fprintf(out, " %13s", a)
		}
		fmt.Fprintln(out)
	}
	sizes := c.sizes
	if op == "barrier" {
		sizes = sizeList{0}
	}
	for _, n := range sizes {
		x := sim.Call{Op: op, Ranks: np, Bytes: n, Tuning: c.tuning}
		chosen, err := c.machine.Choice(x)
		if err != nil {
			return err
		}
		if table {
			fmt.Fprintf(out, "%12d", n)
		}
		for _, x.Algorithm = range algs {
			res, err := c.machine.Time(x)
			if err != nil {
				return fmt.Errorf("%s of %s by %s: %w", op, result.Bytes(n), x.Algorithm, err)
			}
			us, mark := res.Time*1e6, " "
			if x.Algorithm == chosen {
				mark = "*"
			}
			chart.Points = append(chart.Points, result.Point{Series: x.Algorithm, At: float64(n), Y: us,
				Chosen: mark == "*"})
			if table {
				fmt.Fprintf(out, " %12.2f%s", us, mark)
				continue
			}
			r := result.Row{Impl: x.Algorithm, Op: op, NP: np, Bytes: n, Median: us, Min: us, P99: us, Iters: 1}
			if err := w.Write(r); err != nil {
				return err
			}
			if r.Impl = "gompi"; mark == "*" {
				if err := w.Write(r); err != nil {
					return err
				}
			}
		}
		if table {
			fmt.Fprintln(out)
		}
	}
	return nil
}
