//go:build linux

// Package pytorch holds a PyTorch script that runs under gompirun and torchrun
// alike, and the proof of it.
package pytorch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/stress"
)

// findTorch returns the folder of a python3 that has torch, or "".
var findTorch = sync.OnceValue(func() string {
	const has = `import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)`
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin") {
		if exec.Command(filepath.Join(dir, "python3"), "-c", has).Run() == nil {
			return dir
		}
	}
	return ""
})

// setUp returns a command that finds gompirun and a Python with PyTorch.
func setUp(t *testing.T) func(name string, args ...string) string {
	t.Helper()
	stress.Long(t, "importing torch takes seconds")
	path := findTorch()
	if path == "" {
		t.Skip("no python3 with torch: apt-get install python3-torch")
	}
	gompirun := build(t, "mpirun/gompirun")
	return func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@"`, name}, args...)...)
		cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1",
			"PATH="+filepath.Dir(gompirun)+":"+path+":"+os.Getenv("PATH"))
		cmd.WaitDelay = time.Second
		late := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
		defer late.Stop()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
}

// agreed checks that all ranks have reported the same of one training, and returns the report: the
// steps and the loss.
func agreed(t *testing.T, out string, ranks int) string {
	t.Helper()
	lines := regexp.MustCompile(`rank \d of \d: (steps \d+ to \d+, loss [\d.]+), all ranks agree`).FindAllStringSubmatch(out, -1)
	if len(lines) != ranks {
		t.Fatalf("%d ranks say that they agree, want %d:\n%s", len(lines), ranks, out)
	}
	for _, l := range lines {
		if l[1] != lines[0][1] {
			t.Errorf("one rank says %s, another %s", lines[0][1], l[1])
		}
	}
	return lines[0][1]
}

// TestOneScriptRunsUnderBothLaunchers needs a torchrun, too: where Debian's meets
// a newer Python it has to be told where output goes.
func TestOneScriptRunsUnderBothLaunchers(t *testing.T) {
	run := setUp(t)
	flags := []string{"--nproc_per_node=2", "ddp.py", "--steps", "20"}
	ours := agreed(t, run("gompirun", append([]string{"--standalone"}, flags...)...), 2)
	if _, err := exec.LookPath("torchrun"); err != nil {
		t.Skip("no torchrun")
	}
	// Its own --standalone is port 29400, where a second torchrun joins the first
	// one's store, and fails when that ends. Port 0 is any free port.
	apart := []string{"-r", "9:3", "-t", "9:3", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"}
	theirs := agreed(t, run("torchrun", append(apart, flags...)...), 2)
	if ours != theirs {
		t.Errorf("under gompirun %s, under torchrun %s", ours, theirs)
	}
}

func TestAScriptContinuesFromItsSnapshot(t *testing.T) {
	run := setUp(t)
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	whole := agreed(t, run("gompirun", "-np", "2", "ddp.py", "--steps", "200"), 2)
	const kill = `if test $RANK$GOMPI_RESTARTS = 10; then (until test -s $0; do sleep 0.01; done; kill -9 $$) & fi
	exec python3 ddp.py --steps 200 --snapshot $0`
	out := run("gompirun", "-max-restarts", "1", "-np", "2", "sh", "-c", kill, snapshot)
	if strings.Count(out, "gompirun: restart 1 of 1: rank 1 ") != 1 {
		t.Errorf("want one restart:\n%s", out)
	}
	again := agreed(t, out, 2)
	if strings.HasPrefix(again, "steps 0 ") ||
		again[strings.Index(again, "loss"):] != whole[strings.Index(whole, "loss"):] {
		t.Errorf("after a restart %s, want the loss of %s and not from step 0", again, whole)
	}
}
