package contest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"gompi/internal/cli"
)

// A Measure measures, with a line of progress for each run, and writes the
// report of what it has measured, also if ctx has ended.
type Measure func(ctx context.Context, report, progress io.Writer) error

// Main measures until it is done or interrupted and returns the exit status of a program: 0, 1
// after an error, 2 if the arguments make no sense. A peer that is not here or fails is said in the
// report, and no error. set has read the command line, and wrong is what is wrong with it; usage
// stands above the list of flags.
func Main(set *cli.Set, wrong error, usage string, measure Measure, stdout, stderr io.Writer) int {
	if set.Answer(wrong, usage+set.FlagUsages(), stdout) {
		return 0
	}
	name := set.Name()
	if wrong != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, wrong)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// EnterAll makes peers ready to run program: those that are here, and why others
// are not.
func (w *Workshop) EnterAll(ctx context.Context, peers []Competitor, program string) (here []Entrant, absent []string) {
	for _, c := range peers {
		e, err := w.Enter(ctx, c, program)
		if err != nil {
			absent = append(absent, fmt.Sprintf("%s: %v", c.Name, err))
			continue
		}
		here = append(here, e)
	}
	return here, absent
}

// Numbers reads the value of a flag that takes numbers of ranks.
func Numbers(flag, list string) ([]int, error) {
	var ns []int
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s %q: %q: want numbers of ranks, 1 or more, separated by commas", flag, list, s)
		}
		ns = append(ns, n)
	}
	return ns, nil
}
