// Command gompi-bench times the operations of comm between the ranks it is
// started as:
//
//	gompirun -np 2 gompi-bench -sizes 8,64K,4M latency allreduce
//
// -h lists the operations and flags; bench/internal/measure says how it times.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
