package hostfile_test

import (
	"fmt"
	"strings"

	"gompi/hostfile"
)

func ExampleParse() {
	list, err := hostfile.Parse("hosts", strings.NewReader("node01 slots=4 # Open MPI\nnode[02-03]:8 # Slurm, hydra\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range list.Hosts {
		fmt.Println(h.Name, h.Slots)
	}
	_, err = hostfile.Parse("hosts", strings.NewReader("node01 slots=four\n"))
	fmt.Println(err)
	// Output:
	// node01 4
	// node02 8
	// node03 8
	// hosts:1: slots=four: want a count from 1 to 1048576, * or auto, in "node01 slots=four"
}
