// Command gompi-ddpbench measures data-parallel training by comm/ddp beside PyTorch's
// DistributedDataParallel and MPI libraries, on this machine and in turn:
//
//	gompi-ddpbench -np 2,4 -csv raw.csv -html report.html resnet50 mlp > ddp.md
//
// The peers run our programs in Python and C. Those in C it builds. The start of jobs, and their
// start after a failure, are gompi-launchbench's to measure.
package main

import (
	"io"
	"os"

	"gompi/bench/internal/contest"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args)
	return contest.Main(cfg.set, err, usage(), cfg.compare, stdout, stderr)
}
