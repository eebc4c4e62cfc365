package mpirun

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// torchScript returns the example that trains with PyTorch, and a value of PATH
// with a python3 that has it.
func torchScript(t *testing.T) (script, path string) {
	t.Helper()
	script, err := filepath.Abs("../examples/pytorch/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	dir := findTorch()
	if dir == "" {
		t.Skip("no python3 with torch: apt-get install python3-torch")
	}
	return script, dir + ":" + os.Getenv("PATH")
}

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

// trained runs a command and checks that four ranks have learnt the same.
func trained(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
	output := regexp.MustCompile(`rank \d of 4: steps 0 to 20, (loss [\d.]+), all ranks agree`).FindAllStringSubmatch(string(out), -1)
	if len(output) != 4 || output[0][1] != output[3][1] {
		t.Errorf("%d ranks agree, want 4:\n%s", len(output), out)
	}
}

// TestATorchScriptRunsOnSeveralHosts starts it over ssh, and then one by one on
// hosts that do not log in to each other.
func TestATorchScriptRunsOnSeveralHosts(t *testing.T) {
	script, path := torchScript(t)
	t.Parallel() // it waits most of the time
	b := testbed.New(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	trained(t, exec.CommandContext(ctx, "gompirun", "-q", "-rsh", b.RSH(), "-H", "host1:2,host2:2", "-x", "PATH="+path,
		script, "--steps", "20"))
	if testing.Short() { // once is enough: importing torch takes seconds
		return
	}

	gompirun, err := exec.LookPath("gompirun")
	if err != nil {
		t.Fatal(err)
	}
	one := func(host int, rank string) *exec.Cmd {
		cmd := b.Command(host, "env", "PATH="+path, testToken, gompirun, "-q", "-nnodes", "2", "-node-rank", rank,
			"-rdzv-endpoint", b.Addr(1)+":29603", "-nproc-per-node", "2", script, "--steps", "20")
		cmd.WaitDelay = 5 * time.Second
		return cmd
	}
	var output strings.Builder
	second := one(2, "1")
	second.Stderr = &output
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*time.Minute, func() { second.Process.Kill() }).Stop()
	t.Cleanup(func() {
		second.Process.Kill()
		second.Wait()
		if t.Failed() {
			t.Logf("the second node: %s", output.String())
		}
	})
	trained(t, one(1, "0"))
	if err := second.Wait(); err != nil {
		t.Errorf("the second node: %v\n%s", err, output.String())
	}
}

// TestWhatTorchRecordsIsReported has a function of a script fail that torch's @record decorates.
func TestWhatTorchRecordsIsReported(t *testing.T) {
	stress.Long(t, "importing torch takes seconds")
	_, path := torchScript(t)
	t.Parallel() // it waits for torch
	script := filepath.Join(t.TempDir(), "fails.py")
	const text = `import os, sys
from torch.distributed.elastic.multiprocessing.errors import record
print(os.environ["TORCHELASTIC_ERROR_FILE"], flush=True)
sys.stderr = open(os.devnull, "w")
@record
def main():
    raise ValueError("no data for rank " + os.environ["RANK"])
if os.environ["RANK"] == "1":
    main()
`
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gompirun", "-q", "-np", "2", script)
	cmd.Env = append(os.Environ(), "PATH="+path)
	status, out, output := finish(t, cmd)
	if status != 1 {
		t.Errorf("status %d, want 1", status)
	}
	matches(t, "record", output, `^gompirun: rank 1 on localhost exited with status 1 \(pid \d+\): ValueError: no data for rank 1$`, `^  \|     raise ValueError\("no data for rank "`)
	for file := range strings.FieldsSeq(out) {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is left", file)
		}
	}
}
