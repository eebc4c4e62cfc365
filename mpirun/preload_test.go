//go:build linux

package mpirun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/mpirun/internal/cmdline"
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

// A job that preloads nothing does not say that its time was up in reading it.
func TestNothingToPreloadIsNotWaitedFor(t *testing.T) {
	over := make(chan time.Time, 1)
	over <- time.Time{}
	j := &job{spec: &cmdline.Spec{}, timer: over, done: make(chan struct{}), signals: &signals{}}
	defer close(j.done)
	if err := j.awaitOffer(); err != nil || j.cause != nil || len(over) != 1 {
		t.Errorf("got %v, %+v: want an offer at once", err, j.cause)
	}
}
