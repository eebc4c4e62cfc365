// Gompirun runs a program as the ranks of a job; gompirun -h explains how.
package main

import (
	"os"

	"gompi/mpirun"
)

func main() { os.Exit(mpirun.Main(os.Args[1:])) }
