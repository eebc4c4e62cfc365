// Command gompi-compare measures gompi beside MPI libraries, on this machine and
// in turn, and prints how many times faster it is:
//
//	gompi-compare -peers openmpi-tcp,mpich-tcp -csv raw.csv > ratios.md
//
// The peers run our C counterpart of gompi-bench, which it builds.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
