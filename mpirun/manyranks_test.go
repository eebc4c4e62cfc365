//go:build linux

package mpirun

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// A program of many ranks, whose tokens go through the memory of the host, and which
// take turns on few processors.
func TestAProgramOf64Ranks(t *testing.T) {
	stress.Long(t, "it builds a program")
	t.Parallel()
	ring := filepath.Join(t.TempDir(), "ring")
	if out, err := exec.Command("go", "build", "-o", ring, "gompi/examples/ring").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command("gompirun", "-q", "-timeout", "100", "-np", "64", ring).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "1000 laps around 64 ranks") {
		t.Errorf("%v: %s", err, out)
	}
}
