// Command gompi-bench measures gompi: its operations, by ranks that gompirun starts, and other
// implementations beside it, which gompi-bench starts itself.
//
//	gompirun -np 2 gompi-bench run -sizes 8,64K,4M latency allreduce
//	gompi-bench compare -np 2 -html compare.html
//	gompi-bench launch -np 1,4,16
//	gompi-bench ddp -np 2 resnet50
//	gompi-bench programs -np 2,4 lammps-melt hpcc
//	gompi-bench sim -np 64,1024 -machine cluster,rate=100gbit allreduce
//
// internal/measure documents the method of timing.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gompi/internal/env"
	"gompi/internal/version"
)

// A command is a subcommand. main returns the exit status.
type command struct {
	name, does string
	main       func(args []string, stdout, stderr io.Writer) int
}

// commands returns all commands but "rank", the program of launch's ranks.
func commands() []command {
	return []command{
		{"run", "time operations between ranks, of which this is one", runMain},
		{"compare", "measure operations beside Open MPI, MPICH, Intel MPI, oneCCL and gloo", compareMain},
		{"launch", "measure starting and ending jobs beside other launchers", launchMain},
		{"ddp", "measure data-parallel training beside PyTorch and MPI libraries", ddpMain},
		{"programs", "measure MPI programs on gompi's MPI libraries beside others", programsMain},
		{"sim", "simulate collectives on networks, and of as many ranks, as one does not have", simMain},
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: gompi-bench COMMAND [flags] ...\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-8s %s\n", c.name, c.does)
	}
	return b.String() + "\ngompi-bench COMMAND -h lists the flags.\n"
}

func main() {
	os.Setenv(env.History, "0") // hundreds of short jobs would displace the user's
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}

func dispatch(args []string, stdout, stderr io.Writer) int {
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case rankCommand:
		return rankMain(args, stdout, stderr)
	case "-h", "--help", "help":
		fmt.Fprint(stdout, usage())
		return 0
	case "-version", "--version":
		fmt.Fprintln(stdout, version.Text("gompi-bench"))
		return 0
	}
	if name == "profile" { // of earlier versions
		fmt.Fprintln(stdout, "gompi-bench profile has nothing to do: ranks measure what it measured")
		return 0
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == name })
	if i < 0 {
		fmt.Fprintf(stderr, "gompi-bench: command %q: want one of run, compare, launch, ddp, programs, sim; gompi-bench -h says what they do\n", name)
		return 2
	}
	return commands()[i].main(args, stdout, stderr)
}

// fail prints why the command of the given name ends, and returns status.
func fail(stderr io.Writer, name string, status int, why error) int {
	fmt.Fprintf(stderr, "gompi-bench %s: %v\n", name, why)
	return status
}
