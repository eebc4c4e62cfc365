// Command gompi-compare measures gompi beside MPI libraries and gloo, on this
// machine and in turn, and prints how many times faster it is:
//
//	gompi-compare -np 2,4 -csv raw.csv -html report.html > ratios.md
//
// The peers run our counterparts of gompi-bench, in C and Python. Those in C it
// builds.
package main

import (
	"os"

	"gompi/bench/internal/hello"
)

func main() {
	hello.ExitIfRank()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
