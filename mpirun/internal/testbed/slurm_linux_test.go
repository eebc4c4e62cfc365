package testbed

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var nodes = flag.Int("nodes", 2, "nodes of TestRunInSlurm")

// TestRunInSlurm makes a Slurm for a command, as for one that measures:
//
//	go test ./mpirun/internal/testbed -run RunInSlurm -v -timeout 0 -args -nodes 2 \
//	    -command 'salloc -N2 --ntasks-per-node=4 gompi-bench launch -np 2,8'
func TestRunInSlurm(t *testing.T) {
	if *command == "" {
		return // only with a command
	}
	cmd := NewSlurm(t, *nodes).Command("sh", "-c", *command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

func TestSlurmRunsJobsOnEveryNode(t *testing.T) {
	b := NewSlurm(t, 2)
	out, err := b.Command("srun", "-N2", "--ntasks-per-node=1", "-c3", "--gres=gpu:1", "sh", "-c",
		"echo $SLURMD_NODENAME $SLURM_CPUS_ON_NODE $SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES").CombinedOutput()
	if err != nil {
		t.Fatalf("srun: %v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	if want := []string{"n1 3 3 0", "n2 3 3 0"}; !slices.Equal(lines, want) {
		t.Errorf("srun: %q, want %q", lines, want)
	}
}
