package slurmbed

import (
	"slices"
	"strings"
	"testing"
)

func TestBedRunsJobsOnEveryNode(t *testing.T) {
	b := New(t, 2)
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
