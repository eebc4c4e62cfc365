// Command gompi-topo prints how the GPUs of this host reach each other and which
// processors are near them, as "nvidia-smi topo -m" does, but for network cards,
// or as JSON for gompirun's agents.
//
//	gompi-topo [-json]
//
// It is the only program here that asks NVIDIA's management library (NVML), and
// a program of its own so that gompirun stays static: the binding that it uses
// cannot be linked without C, and a call of a function that the installed driver
// lacks ends the process. It has to be linked with lazy binding, as make does
// (-z lazy): some distributions link otherwise by default, and then it does not
// start.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"gompi/cudaops/topo"
	"gompi/internal/cli"
)

const usage = `usage: gompi-topo [-json]

Prints how the GPUs of this host reach each other and which processors are near
them. With -json it prints all that is known of them, for programs, and its exit
status is 0 if that is nothing, too.
`

func main() { os.Exit(run(os.Args[1:], find, os.Stdout, os.Stderr)) }

// run runs the program with what finds the GPUs, and returns its exit status.
func run(args []string, find func() *topo.Host, stdout, stderr io.Writer) int {
	set := cli.New("gompi-topo")
	var asJSON bool
	set.BoolVar(&asJSON, "json", false, "")
	rest, err := set.Parse(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("argument %q: want flags only", rest[0])
	}
	if set.Answer(err, usage, stdout) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "gompi-topo: %v\n%s", err, usage)
		return 2
	}
	if err := show(find(), asJSON, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "gompi-topo: %v\n", err)
		return 1
	}
	return 0
}

// show writes what is known.
func show(h *topo.Host, asJSON bool, stdout, stderr io.Writer) error {
	if asJSON {
		return json.NewEncoder(stdout).Encode(h)
	}
	for _, w := range h.Warnings {
		fmt.Fprintf(stderr, "gompi-topo: %s\n", w)
	}
	switch {
	case h.Trouble != "":
		return errors.New(h.Trouble)
	case len(h.Devices) == 0:
		return errors.New("there is no NVIDIA GPU here that may be used")
	}
	return h.Write(stdout)
}
