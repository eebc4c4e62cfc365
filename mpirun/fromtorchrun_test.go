//go:build linux

package mpirun

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/stress"
)

// torchStandIn takes the place of a training script: it checks the variables about its job, and
// meets the other ranks at MASTER_ADDR as PyTorch's store does.
const torchStandIn = `
import os, socket, sys, time
e = os.environ
rank, size = int(e["RANK"]), int(e["WORLD_SIZE"])
local, locals_ = int(e["LOCAL_RANK"]), int(e["LOCAL_WORLD_SIZE"])
assert 0 <= rank < size and 0 <= local < locals_ <= size
assert rank == int(e["GROUP_RANK"]) * locals_ + local and size == int(e["GROUP_WORLD_SIZE"]) * locals_
assert e["ROLE_RANK"] == e["RANK"] and e["TORCHELASTIC_RESTART_COUNT"] == "0" and e["TORCHELASTIC_RUN_ID"]
if "mpi" in sys.argv[0]:
    assert e["OMPI_COMM_WORLD_RANK"] == e["RANK"] and e["OMPI_COMM_WORLD_SIZE"] == e["WORLD_SIZE"]
    assert e["OMPI_COMM_WORLD_LOCAL_RANK"] == e["LOCAL_RANK"]
port, late = int(e["MASTER_PORT"]), time.time() + 20
if rank == 0:
    store = socket.create_server(("", port))
    store.settimeout(20)
    others = [store.accept()[0] for _ in range(size - 1)]
    met = {int(c.recv(16)) for c in others}
    assert met == set(range(1, size)), met
    for c in others:
        c.sendall(b"go")
else:
    while True:
        try:
            c = socket.create_connection((e["MASTER_ADDR"], port))
            break
        except ConnectionRefusedError:
            if time.time() > late:
                raise
            time.sleep(0.01)
    c.settimeout(20)
    c.sendall(str(rank).encode())
    assert c.recv(2) == b"go"
print("rank", rank, "of", size, "met:", *sys.argv, flush=True)
`

// TestTorchrunsLinesWithTheWordReplaced runs lines from the instructions of
// projects that train with torchrun, each node's by itself, on stand-ins for
// their scripts. Where they name an address, the nodes live in a network that
// has it.
func TestTorchrunsLinesWithTheWordReplaced(t *testing.T) {
	stress.Slow(t, "it runs all lines of a page")
	for _, tool := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	tests := []struct {
		lines []string // of each node
		ranks int
		args  string
	}{
		{[]string{`torchrun --standalone --nproc_per_node=4 multigpu_torchrun.py 50 10`}, 4,
			"multigpu_torchrun.py 50 10"},
		{[]string{`time torchrun \
    --nnodes=1 \
    --nproc_per_node=2 \
    --rdzv_id=12345 \
    --rdzv_backend=c10d \
    --rdzv_endpoint=$HOSTNAME:3000 \
    train.py --ddp --epochs 5`}, 2, "train.py --ddp --epochs 5"},
	}
	for _, script := range []string{"multinode_ddp.py", "multinode_gpu_ddp.py", "pytorch_multinode_ddp_mpi.py",
		"pytorch_multinode_ddp_mpi_gpu.py"} {
		line := `torchrun --nproc-per-node=1 --nnodes=2 --node-rank=0 --rdzv-id=456 --rdzv-backend=c10d --rdzv-endpoint=10.0.0.1:29603 ` + script + ` 1000 1000`
		tests = append(tests, struct {
			lines []string
			ranks int
			args  string
		}{[]string{line, strings.Replace(line, "--node-rank=0", "--node-rank=1", 1)}, 2, script + " 1000 1000"})
	}
	for _, tt := range tests {
		t.Run(strings.Fields(tt.args)[0], func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, strings.Fields(tt.args)[0]), []byte(torchStandIn),
				0o644); err != nil {
				t.Fatal(err)
			}
			out := runLines(t, dir, tt.lines)
			for rank := range tt.ranks {
				want := "rank " + string(rune('0'+rank)) + " of " + string(rune('0'+tt.ranks)) + " met: " +
					tt.args + "\n"
				if strings.Count(out, want) != 1 {
					t.Errorf("want %q once:\n%s", want, out)
				}
			}
		})
	}
}

// TestLinesForTorchrunsUsersRun runs the lines of the table in docs/from-torchrun.md.
func TestLinesForTorchrunsUsersRun(t *testing.T) {
	stress.Slow(t, "it runs all lines of a page")
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	page, err := os.ReadFile("../docs/from-torchrun.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.py": torchStandIn, "pkg/train.py": torchStandIn, "train": "#!/bin/sh\necho met $RANK",
		"token": testToken, "hosts": "localhost\n127.0.0.2\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777),
			os.WriteFile(file, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	lines := regexp.MustCompile("`(gompirun [^`]+)`").FindAllStringSubmatch(section, -1)
	if len(lines) < 7 {
		t.Fatalf("%d lines in docs/from-torchrun.md, want 7 or more:\n%s", len(lines), section)
	}
	for _, m := range lines {
		nodes := []string{m[1]}
		if strings.Contains(m[1], "--node-rank=0") {
			nodes = append(nodes, strings.Replace(m[1], "--node-rank=0", "--node-rank=1", 1))
		}
		t.Run(m[1], func(t *testing.T) {
			if out := runLines(t, dir, nodes); !strings.Contains(out, "met") {
				t.Errorf("no rank has met others:\n%s", out)
			}
		})
	}
}

// runLines runs each line in a shell of its own, all at once, and returns their output. All must
// end well.
func runLines(t *testing.T, dir string, lines []string) string {
	t.Helper()
	script := ""
	for _, line := range slices.Backward(lines) { // node 0 last
		script += "( " + strings.ReplaceAll(line, "torchrun ", "gompirun ") + "\n) & all=\"$all $!\"\n"
	}
	script += "for p in $all; do wait $p || exit; done"
	cmd := exec.Command("bash", "-c", script)
	if len(lines) > 1 {
		cmd = exec.Command("unshare", "--map-root-user", "--net", "bash", "-c",
			"ip link set lo up && ip address add 10.0.0.1/32 dev lo || exit 77\n"+script)
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), testToken)
	cmd.WaitDelay = 5 * time.Second
	late := time.AfterFunc(2*soon, func() { cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	if len(lines) > 1 && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 77 ||
		strings.HasPrefix(string(out), "unshare: ") {
		t.Skipf("no network of its own here: %s", out)
	}
	if err != nil {
		t.Fatalf("%v:\n%s\n%s", err, script, out)
	}
	return string(out)
}
