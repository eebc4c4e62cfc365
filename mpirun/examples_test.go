//go:build linux

package mpirun

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/testbed"
)

// standIn runs instead of the examples' scripts. It prints their arguments, and the rank's place.
const standIn = `import os, sys
e = os.environ
assert e["RANK"] == e["SLURM_PROCID"] and e["LOCAL_RANK"] == e["SLURM_LOCALID"] and e["WORLD_SIZE"] == e["SLURM_NTASKS"]
assert e["MASTER_ADDR"] and int(e["MASTER_PORT"]) > 0 and e["CUDA_VISIBLE_DEVICES"]
os.write(1, " ".join(["rank", e["RANK"], "of", e["WORLD_SIZE"], "local", e["LOCAL_RANK"], "on", e["SLURMD_NODENAME"], *sys.argv, "\n"]).encode())
`

// The batch scripts of examples/slurm run as they stand, except for their requests to a cluster.
func TestSlurmExamples(t *testing.T) {
	stress.Long(t, "starts a Slurm")
	for _, prog := range []string{"bash", "python3"} {
		if _, err := exec.LookPath(prog); err != nil {
			t.Skipf("needs %s", prog)
		}
	}
	t.Parallel() // it waits most of the time
	bed := testbed.NewSlurm(t, 3)
	tests := []struct {
		script string
		asks   []string // instead of the script's requests
		ranks  int
		perOne int // ranks on each node
		args   string
	}{
		{"handmade", []string{"--partition=all", "--nodes=3", "--cpus-per-task=4", "--mem=0"}, 3, 1,
			"main.py --net resnet18 --lr 1e-3 --epochs 50"},
		{"palmetto", []string{"--cpus-per-task=4", "--mem=0", "--gpus=4"}, 4, 2, "train.py --ddp --epochs 5"},
		{"parallelcluster", []string{"--ntasks-per-node=2"}, 4, 2, "multigpu_torchrun.py 50 10"},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			script, err := filepath.Abs("../examples/slurm/" + tt.script + ".sbatch")
			if err != nil {
				t.Fatal(err)
			}
			dir := workplace(t, strings.Fields(tt.args)[0])
			out := submit(t, bed, []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}, dir,
				append(append(tt.asks, "--chdir="+dir), script)...)
			var want []string
			for r := range tt.ranks {
				want = append(want, fmt.Sprintf("rank %d of %d local %d on n%d %s ", r, tt.ranks, r%tt.perOne,
					r/tt.perOne+1, tt.args))
			}
			wantLines(t, out, `(?m)^rank .*$`, want)
		})
	}
}

// The trainings of examples run from their batch scripts, on two nodes with two ranks each, and a
// script of theirs for PyTorch under srun alone.
func TestSlurmWorkloads(t *testing.T) {
	stress.Long(t, "starts a Slurm")
	t.Parallel() // it waits most of the time
	bed := testbed.NewSlurm(t, 2)
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "gompi/examples/toy", "gompi/examples/cnn",
		"gompi/examples/movielens").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, tt := range []struct{ script, flags, want string }{
		{"toy", "6 3", "epoch 6/6: squared error "},
		{"cnn", "-samples 60 -batch 10 -epochs 1", "a step has 20 samples of all 4 ranks, -batch 10 per node"},
		{"movielens", "-ratings 1500 -width 8 -epochs 1", "result: RMSE "},
	} {
		t.Run(tt.script, func(t *testing.T) {
			script, err := filepath.Abs("../examples/slurm/" + tt.script + ".sbatch")
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--chdir=" + dir, script}, strings.Fields(tt.flags)...)
			out := submit(t, bed, []string{"HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}, dir, args...)
			if !strings.Contains(out, tt.want) || !strings.Contains(out, " of all 4 ranks") {
				t.Errorf("want %q and 4 ranks:\n%s", tt.want, out)
			}
		})
	}
	t.Run("toy.py", func(t *testing.T) {
		python := ""
		for _, path := range []string{"python3", "/usr/bin/python3"} {
			if python == "" && exec.Command(path, "-c", "import torch").Run() == nil {
				python = path
			}
		}
		if python == "" {
			t.Skip("no python3 with torch: apt-get install python3-torch")
		}
		out, err := bed.Command("srun", "--mpi=none", "-N1", "-n2", "--cpu-bind=none", python,
			"../examples/pytorch/toy.py", "1").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "of all 2 ranks") ||
			!strings.Contains(string(out), "all ranks agree") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// The launcher of examples/k8s is a command line that gompirun understands, and
// finds its hosts where the operator says that they are.
func TestOperatorExample(t *testing.T) {
	manifest, err := os.ReadFile("../examples/k8s/train.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(manifest), "command: [gompirun, ")
	line, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		t.Fatal("no command: [gompirun, ...]")
	}
	spec, err := cmdline.Parse(strings.Split(strings.ReplaceAll(line, `"`, ""), ", "), os.LookupEnv,
		func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if spec.Reach.StartTimeout != 5*time.Minute ||
		!slices.Equal(spec.Programs[0].Argv, []string{"train", "-epochs", "10"}) {
		t.Errorf("%+v", spec)
	}
	const mounted = "/etc/mpi/hostfile"
	operator := map[string]string{"K_MPI_JOB_ROLE": "launcher", "OMPI_MCA_orte_default_hostfile": mounted,
		"OMPI_MCA_orte_set_default_slots": "2"}
	machine := inventory.Surroundings{
		Getenv: func(name string) string { return operator[name] },
		Read: func(file string) ([]byte, error) {
			if file != mounted {
				return nil, fs.ErrNotExist
			}
			return []byte("train-worker-0.train.default.svc slots=2\ntrain-worker-1.train.default.svc slots=2\n"), nil
		},
		IsLocal: func(string) bool { return false },
	}
	_, hosts, _, err := planInput(spec, machine, func(string) {})
	if err != nil || len(hosts) != 2 || hosts[0].Name != "train-worker-0.train.default.svc" || hosts[1].Slots != 2 {
		t.Errorf("%+v, %v", hosts, err)
	}
}

// workplace makes the folder in which a batch script runs: its program, and the
// home of a user of conda.
func workplace(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		program:                            standIn,
		"python":                           "#!/bin/sh\nexec python3 \"$@\"\n",
		"anaconda3/etc/profile.d/conda.sh": "conda() { test \"$*\" = 'activate myenv'; }\n",
		"activate":                         "test \"$1\" = PytorchDDPExample\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
