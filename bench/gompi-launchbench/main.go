// Command gompi-launchbench measures how long a job takes from start to finish
// that does nothing but start, meet and end, under gompirun, under the launchers
// of MPI libraries and under torchrun:
//
//	gompi-launchbench -np 1,4,16,64
//	gompi-launchbench -hostfile hosts -np 8 -html all.html
package main

import (
	"os"

	"gompi/bench/internal/hello"
)

func main() {
	hello.ExitIfRank()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
