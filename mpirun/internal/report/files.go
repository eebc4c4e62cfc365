package report

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/mpirun/internal/cmdline"
)

// Open returns a Collector for np ranks, and opens the files that want names, before the job is
// started, so that invalid names are reported then.
func Open(want *cmdline.Stats, program *cmdline.Program, np int) (c *Collector, err error) {
	c = New(program.Name(), np)
	c.want, c.Hint = want, uncounted(program.Argv)
	if want.Trace != "" {
		c.trace, err = createTrace(want.Trace)
	}
	if err == nil && want.File != "" {
		c.table, err = os.Create(want.File)
	}
	if err != nil {
		return nil, fmt.Errorf("-stats and -trace: %w", err)
	}
	return c, nil
}

// createTrace makes or empties the file of a trace. It refuses other files, such as the program.
func createTrace(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		first := []byte("{")
		f, _ := os.Open(name) // of a file that cannot be read Create's error tells
		f.Read(first)
		f.Close()
		if first[0] != '{' {
			return nil, fmt.Errorf("%q is a file, but no trace: want -trace FILE", name)
		}
	}
	return os.Create(name)
}

// uncounted returns the likely reason why a program has no figures.
func uncounted(argv []string) string {
	hint := "programs of MPI are counted on gompi's library: -mpi-lib gompi"
	if cmdline.IsPython(argv) {
		return "torch's gloo and nccl are not counted: -torch-backend gompi has gompi do what they do; " + hint
	}
	return hint
}

// Close writes and closes the files, and passes tables for stderr, of a width, to log. A job that has
// failed before a rank could use gompi has no table.
func (c *Collector) Close(failed bool, width int, log func(lines string)) (err error) {
	if c.want.Table {
		sum := c.Summary()
		switch {
		case c.table != nil:
			err = errors.Join(sum.Write(c.table, c.want.File), c.table.Close())
		case len(sum.PerRank) > 0 || !failed:
			var b strings.Builder
			err = sum.Text(&b, width)
			log(strings.TrimRight(b.String(), "\n"))
		}
	}
	if c.trace != nil {
		err = errors.Join(err, c.WriteTrace(c.trace), c.trace.Close())
	}
	return err
}
