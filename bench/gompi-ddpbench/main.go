// Command gompi-ddpbench measures data-parallel training by comm/ddp beside PyTorch's
// DistributedDataParallel and MPI libraries, on this machine and in turn:
//
//	gompi-ddpbench -np 2,4 -csv raw.csv -html report.html resnet50 mlp > ddp.md
//
// The peers run our programs in Python and C. Those in C it builds. The start of jobs, and their
// start after a failure, are gompi-launchbench's to measure.
package main

import (
	"context"
	"io"
	"os"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	return contest.Program{Name: "gompi-ddpbench", Usage: usage(), Parse: func(args []string) (*cli.Set, contest.Measure, error) {
		cfg, err := parse(args)
		return cfg.set, func(ctx context.Context, report, progress io.Writer) error { return cfg.compare(ctx, report, progress) }, err
	}}.Main(args, stdout, stderr)
}
