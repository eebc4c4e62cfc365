// Command gompi-topo prints the GPUs of this host, the processors near them and their
// interconnections, as JSON for gompirun's agents. "nvidia-smi topo -m" prints the same for people,
// and gompirun doctor the relevant part.
//
// Only this program asks NVIDIA's management library (NVML). gompi-topo is separate so that
// gompirun stays static: the binding to NVML cannot be linked without C, and a call of a function
// that the installed driver lacks ends the process. gompi-topo must be linked with lazy binding, as
// make does (-z lazy). Without lazy binding, the default of some distributions, gompi-topo does not
// start.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"gompi/cudaops/topo"
	"gompi/internal/cli"
)

const usage = `usage: gompi-topo

Prints as JSON, for gompirun, what is known of the GPUs of this host.
`

func main() { os.Exit(run(os.Args[1:], find, os.Stdout, os.Stderr)) }

// run runs the program with a function that finds the GPUs, and returns its exit status.
func run(args []string, find func() *topo.Host, stdout, stderr io.Writer) int {
	set := cli.New("gompi-topo")
	rest, err := set.Parse(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("argument %q: want none", rest[0])
	}
	if set.Answer(err, usage, stdout) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "gompi-topo: %v\n%s", err, usage)
		return 2
	}
	if err := json.NewEncoder(stdout).Encode(find()); err != nil {
		fmt.Fprintf(stderr, "gompi-topo: %v\n", err)
		return 1
	}
	return 0
}
