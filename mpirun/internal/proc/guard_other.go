//go:build !linux

package proc

import (
	"fmt"
	"os"
)

// Guard fails: ranks run on Linux only.
func Guard(string) int {
	fmt.Fprintln(os.Stderr, "gompirun: starting ranks needs Linux")
	return 125
}
