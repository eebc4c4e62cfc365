// Command gompi-launchbench measures how long a job takes from start to finish
// that does nothing but start, meet and end, under gompirun and under the
// launchers of MPI libraries:
//
//	gompi-launchbench -np 1,4,16,64
package main

import "os"

func main() {
	if len(os.Args) == 2 && os.Args[1] == asRank {
		os.Exit(rank(os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
