//go:build linux

package gompitorch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// torch's functions on collectives work as with gloo, in as many ranks, by gompirun and by
// torchrun.
func TestTorchModelsAcrossRanksAreGloos(t *testing.T) {
	b := torchBed(t)
	b.wants(t, "2.8")
	for _, c := range []struct{ script, end string }{
		{"parallel.py", "models across ranks are as with gloo"},
		{"compiled.py", "compiled programs are as with gloo"},
	} {
		for _, np := range []int{2, 4} {
			output, status := b.script(t, np, nil, c.script)
			tell(t, np, c.end, output, status)
		}
		output, status := b.torchrun(t, 2, c.script)
		tell(t, 2, c.end, output, status)
	}
}

// Two ranks load a checkpoint of four ranks.
func TestTorchCheckpointsChangeTheirRanks(t *testing.T) {
	b := torchBed(t)
	b.wants(t, "2.8")
	dir := t.TempDir()
	output, status := b.script(t, 4, nil, "checkpoint.py", "save", dir)
	tell(t, 4, "save: checkpoints are whole", output, status)
	output, status = b.script(t, 2, nil, "checkpoint.py", "load", dir)
	tell(t, 2, "load: checkpoints are whole", output, status)
	output, status = b.torchrun(t, 2, "checkpoint.py", "load", dir)
	tell(t, 2, "load: checkpoints are whole", output, status)
}

// wants skips the test where torch is older.
func (b bed) wants(t *testing.T, oldest string) {
	t.Helper()
	if _, status := b.Run(t, b.Python, "-c",
		"import sys, torch; sys.exit(torch.__version__ < '"+oldest+"')"); status != 0 {
		t.Skip("torch is older than " + oldest)
	}
}

// frameworks are commands that start ranks of a framework, by gompirun and by its own launchers.
// Where gompirun is told to be mpirun, DeepSpeed starts it.
var frameworks = map[string]struct {
	module, command string
	ranks           []int
}{
	"Lightning by gompirun": {"lightning",
		"{gompirun} -oversubscribe -np {np} {python} {scripts}/with_lightning.py {np}", []int{2, 4}},
	"Lightning by itself":   {"lightning", "{python} {scripts}/with_lightning.py {np}", []int{2}},
	"Lightning by torchrun": {"lightning", "{torchrun} {scripts}/with_lightning.py {np}", []int{2}},
	"DeepSpeed by gompirun": {"deepspeed",
		"{gompirun} -oversubscribe -np {np} {python} {scripts}/with_deepspeed.py {np}", []int{2, 4}},
	"DeepSpeed by itself": {"deepspeed",
		"{bin}/deepspeed --num_accelerators {np} --master_port {port} {scripts}/with_deepspeed.py {np}", []int{2}},
	"DeepSpeed, Intel MPI's launcher": {"deepspeed",
		"{deepspeed} --launcher impi {scripts}/with_deepspeed.py {np}", []int{2}},
	"DeepSpeed, Open MPI's launcher": {"deepspeed",
		"{deepspeed} --launcher openmpi {scripts}/with_deepspeed.py {np}", []int{2}},
	"Ray's actors": {"ray", "{python} {scripts}/with_ray.py {np} actors", []int{2, 4}},
	"Ray Train":    {"ray.train", "{python} {scripts}/with_ray.py {np} train", []int{2}},
}

// Each framework trains over gompi as one process does.
func TestFrameworksOverTorchTrain(t *testing.T) {
	b := torchBed(t)
	dir := mpirunIsGompirun(t, b.Gompirun)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DS_ACCELERATOR", "cpu")
	for name, c := range frameworks {
		t.Run(name, func(t *testing.T) {
			if output, status := b.Run(t, b.Python, "-c", "import "+c.module); status != 0 {
				t.Skipf("left out: %s is not installed: %s", c.module, output)
			}
			framework := regexp.MustCompile(`\w+`).FindString(name)
			for _, np := range c.ranks {
				command := strings.ReplaceAll(c.command, "{deepspeed}",
					"{bin}/deepspeed --force_multi --no_ssh_check --hostfile "+dir+"/hosts --master_addr 127.0.0.1")
				command = strings.ReplaceAll(command, "{torchrun}",
					"{python} -m torch.distributed.run --standalone --nproc_per_node {np}")
				words := strings.NewReplacer("{gompirun}", b.Gompirun, "{python}", b.Python, "{bin}",
					filepath.Dir(b.Python), "{scripts}", "tests/frameworks", "{np}", strconv.Itoa(np), "{port}",
					freePort(t))
				output, status := b.Run(t, strings.Fields(words.Replace(command))...)
				tell(t, np, "trains by "+framework, output, status)
			}
		})
	}
}

// mpirunIsGompirun makes a folder for PATH in which mpirun is gompirun, and DeepSpeed takes that
// for Open MPI's. Its file hosts has two ranks' worth of this host.
func mpirunIsGompirun(t *testing.T, gompirun string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.Symlink(gompirun, filepath.Join(dir, "mpirun")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ompi_info": "#!/bin/sh\n", "hosts": "localhost slots=2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Frameworks that choose a backend themselves train over gompi as over gloo, by gompirun and by
// their own launchers.
func TestTorchFrameworksTrainAsWithGloo(t *testing.T) {
	b := torchBed(t)
	for module, script := range map[string]string{"accelerate": "with_accelerate.py",
		"transformers": "with_trainer.py"} {
		if _, status := b.Run(t, b.Python, "-c",
			"import torch, accelerate, "+module+"; assert torch.__version__ >= '2.5'"); status != 0 {
			t.Logf("left out: this Python has no %s, or a torch older than 2.5", module)
			continue
		}
		for _, np := range []string{"2", "4"} {
			run := []string{filepath.Join("tests/frameworks", script), filepath.Join(t.TempDir(), "losses")}
			by := func(backend string, launcher ...string) {
				t.Helper()
				output, status := b.Run(t, append(launcher, run...)...)
				if n := strings.Count(output, " trains as with gloo, by "+backend); strconv.Itoa(n) != np ||
					status != 0 {
					t.Errorf("%q: status %d, %d ranks train as with gloo, by %s, want %s:\n%s", launcher, status, n,
						backend, np, output)
				}
			}
			by("gloo", b.Gompirun, "-oversubscribe", "-np", np, b.Python)
			by("gompi", b.Gompirun, "-oversubscribe", "-torch-backend", "gompi", "-np", np, b.Python)
			if np != "2" {
				continue
			}
			set := []string{"env", "GOMPI_TORCH_BACKEND=gompi", b.Python, "-m"}
			by("gompi", append(set, "torch.distributed.run", "--standalone", "--nproc_per_node", np)...)
			by("gompi", append(set, "accelerate.commands.launch", "--multi_gpu", "--num_processes", np,
				"--num_machines", "1",
				"--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0")...)
		}
	}
}
