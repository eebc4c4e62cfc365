//go:build linux

package mpirun

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gompi/internal/stress"
)

// TestTrainingThatLosesARankEndsAsIfItHadNot kills a rank once there is a
// snapshot. Started again, the training ends with the same bits.
func TestTrainingThatLosesARankEndsAsIfItHadNot(t *testing.T) {
	stress.Long(t, "it trains twice")
	t.Parallel() // others wait meanwhile
	dir := t.TempDir()
	train := filepath.Join(dir, "train")
	if out, err := exec.Command("go", "build", "-o", train, "gompi/examples/train").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	data, err := filepath.Abs("internal/remote") // little text is held out to judge the network by
	if err != nil {
		t.Fatal(err)
	}
	const killed = `if test $RANK = 1 && test $GOMPI_RESTARTS = 0; then
		(until test -s $SNAPSHOT; do sleep 0.01; done; kill -9 $$) &
	fi
	`
	run := func(snapshot string, flags ...string) (string, []byte) {
		script := `exec "$@"`
		if len(flags) > 0 {
			script = killed + script
		}
		args := append(flags, "-q", "-timeout", "300", "-np", "2", "-x", "SNAPSHOT="+snapshot, "sh", "-c", script, "sh",
			train, "-data", data, "-batch", "64", "-steps", "100", "-save-every", "5", "-snapshot", snapshot)
		cmd := exec.Command("gompirun", args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("gompirun: %v\n%s%s", err, out, stderr.String())
		}
		saved, err := os.ReadFile(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		output := stderr.String()
		if want := len(flags) / 2; strings.Count(output, "restart ") != want {
			t.Errorf("%v: want %d restarts:\n%s", flags, want, output)
		}
		return regexp.MustCompile(`loss [\d.]+`).FindString(string(out)), saved
	}
	loss, want := run(filepath.Join(dir, "whole"))
	if loss == "" {
		t.Fatal("the training does not say its loss")
	}
	got, saved := run(filepath.Join(dir, "killed"), "-max-restarts", "1")
	if got != loss || !bytes.Equal(saved, want) {
		t.Errorf("after a restart %s, want %s, and the same snapshot", got, loss)
	}
}
