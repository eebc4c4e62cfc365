//go:build linux

package mpirun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file that takes long to be read does not keep the job from hearing of its time
// limit, as of signals.
func TestReadingWhatIsPreloadedCanBeEnded(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil { // of which no byte is stored
		t.Fatal(err)
	}
	cmd := exec.Command("gompirun", "-q", "-timeout", "1", "-np", "1", "-preload-files", large, "true")
	defer time.AfterFunc(soon, func() { cmd.Process.Kill() }).Stop()
	out, _ := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != 124 || !strings.Contains(string(out), "time limit of 1s reached") {
		t.Errorf("status %d, %q; want the time limit", status, out)
	}
}
