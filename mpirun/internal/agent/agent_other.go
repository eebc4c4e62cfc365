//go:build !linux

package agent

import (
	"fmt"
	"os"
)

// Run fails: ranks run on Linux only.
func Run(in, out, dog, input int) int {
	fmt.Fprintln(os.Stderr, "gompirun: starting ranks needs Linux")
	return 125
}
