//go:build linux

package mpirun

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gompi/mpirun/internal/testbed"
)

// ofTasks makes a process print Slurm's variables of tasks.
const ofTasks = `for v in PROCID LOCALID NODEID GTIDS NTASKS NPROCS STEP_NUM_TASKS NNODES STEP_NUM_NODES TASKS_PER_NODE STEP_TASKS_PER_NODE NTASKS_PER_NODE; do
	eval "printf '%s=%s ' $v \$SLURM_$v"; done; scontrol show hostnames $SLURM_STEP_NODELIST | paste -sd,`

// describeRanks asks srun's own tasks for Slurm's variables, and wants the same ones in
// gompirun's ranks.
func describeRanks(t *testing.T, bed *testbed.Slurm) {
	ask := func(alloc []string, launch ...string) []string {
		t.Helper()
		args := slices.Concat([]string{"salloc", "-Q"}, alloc, launch, []string{"sh", "-c", ofTasks})
		lines, stderr, status := inSlurm(t, bed, args...)
		if status != 0 {
			t.Fatalf("%q: status %d\n%s", args, status, stderr)
		}
		return lines
	}
	for _, alloc := range [][]string{{"-N3", "--ntasks-per-node=2"}, {"-N2", "-n3", "-w", "n1,n2"},
		{"-N2", "-w", "n2,n3"}} {
		want := ask(alloc, "srun")
		if got := ask(alloc, "gompirun"); !slices.Equal(got, want) {
			t.Errorf("salloc %q: ranks are told\n%s\nwant, as tasks of srun\n%s", alloc, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
	// Where gompirun places ranks otherwise than the job was asked for, it is the ranks that count.
	got := ask([]string{"-N3", "-w", "n1,n2,n3"}, "gompirun", "-H", "n2,n3", "-nproc-per-node", "2")
	var want []string
	for r := range 4 {
		ours := []string{"0,1", "2,3"}[r/2]
		want = append(want, fmt.Sprintf("PROCID=%d LOCALID=%d NODEID=%d GTIDS=%s NTASKS=4 NPROCS=4 STEP_NUM_TASKS=4 NNODES=2 STEP_NUM_NODES=2 "+
			"TASKS_PER_NODE=2(x2) STEP_TASKS_PER_NODE=2(x2) NTASKS_PER_NODE= n2,n3", r, r%2, r/2, ours))
	}
	if !slices.Equal(got, want) {
		t.Errorf("ranks are told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	lines, _, _ := inSlurm(t, bed, "salloc", "-Q", "-N2", "gompirun", "-standalone", "sh", "-c",
		"echo $SLURM_NTASKS $SLURM_NNODES $SLURM_STEP_NODELIST")
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "1 1 ") {
		t.Errorf("-standalone: %q, want one task on one node", lines)
	}
}

// launchInRanks has rank 0 start gompirun and srun, which find the job as it was
// asked for, not as the ranks above are placed.
func launchInRanks(t *testing.T, bed *testbed.Slurm) {
	const first = "test $RANK = 0 || exit 0; "
	for _, tt := range []struct {
		alloc, above []string
		inner        string
		want         int // processes
	}{
		{[]string{"-N2", "-n3"}, []string{"-np", "1"}, "gompirun echo hi", 3},
		{[]string{"-N3", "--ntasks-per-node=2"}, []string{"-N", "1"}, "gompirun echo hi", 6},
		{[]string{"-N2", "-c2"}, []string{"-nproc-per-node", "2"}, "gompirun echo hi", 2},
		{[]string{"-N2"}, []string{"-standalone"}, "gompirun echo hi", 2},
		{[]string{"-N2", "-n3"}, nil, "gompirun -np 2 gompirun echo hi", 6},
		{[]string{"-N2", "-n3"}, nil, "srun --overlap echo hi", 3}, // as many as there are ranks
		{[]string{"-N2", "-n3"}, []string{"-np", "2"}, "srun --overlap -N2 -n2 echo hi", 2},
		{[]string{"-N3", "--ntasks-per-node=2"}, nil, "srun --overlap -n1 echo hi", 1},
	} {
		args := slices.Concat([]string{"salloc", "-Q"}, tt.alloc, []string{"gompirun", "-q"}, tt.above,
			[]string{"sh", "-c", first + tt.inner})
		lines, stderr, status := inSlurm(t, bed, args...)
		if !slices.Equal(lines, slices.Repeat([]string{"hi"}, tt.want)) || status != 0 {
			t.Errorf("%q: %q, status %d, want %d times hi\n%s", args, lines, status, tt.want, stderr)
		}
	}
	_, stderr, status := inSlurm(t, bed, "salloc", "-Q", "-N2", "-n2", "gompirun", "-q", "sh", "-c",
		first+"srun --overlap gompirun echo hi")
	if status != statusFailed || !strings.Contains(stderr, "gompirun: srun has started 2 of me") {
		t.Errorf("several gompiruns: status %d\n%s", status, stderr)
	}
	// The launcher's own node has no step.
	out := batch(t, bed, "#SBATCH -N2 -n3\ngompirun -np 1 sh -c 'gompirun echo hi; srun --overlap -N2 -n2 echo ho'\n")
	if strings.Count(out, "hi\n") != 3 || strings.Count(out, "ho\n") != 2 {
		t.Errorf("in a batch script: %q, want three times hi and twice ho", out)
	}
}

// meetWithoutNames looks where ranks are told to meet: on one node of a job
// at the loopback address, also if the batch file has exported the node's name, on
// several at one that all reach, though the nodes' names do not resolve.
func meetWithoutNames(t *testing.T, bed *testbed.Slurm) {
	if exec.Command("getent", "hosts", "n1").Run() == nil {
		t.Skip("something here is called n1")
	}
	lines, stderr, status := inSlurm(t, bed, "env", "MASTER_ADDR=n1", "salloc", "-Q", "-N1", "-n2", "gompirun",
		"printenv", "MASTER_ADDR")
	if !slices.Equal(lines, []string{"127.0.0.1", "127.0.0.1"}) || status != 0 {
		t.Errorf("%q, status %d, want the loopback address\n%s", lines, status, stderr)
	}
	lines, stderr, status = inSlurm(t, bed, "salloc", "-Q", "-N3", "gompirun", "sh", "-c",
		"getent ahosts $MASTER_ADDR >&2 && echo found")
	if !slices.Equal(lines, []string{"found", "found", "found"}) || status != 0 {
		t.Errorf("%q, status %d, want an address that each rank can use\n%s", lines, status, stderr)
	}
}
