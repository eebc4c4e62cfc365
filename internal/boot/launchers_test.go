package boot

import (
	"fmt"
	"strings"
	"testing"
)

func TestFindBelievesTheLauncherThatStartedThisProcess(t *testing.T) {
	type vars = map[string]string
	tests := []struct {
		env        vars
		by         string // "" for none
		rank, size int
		local      bool
	}{
		{nil, "", 0, 0, false},
		{vars{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, "", 0, 0, false},
		{vars{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, "Open MPI",
			3, 4, true},
		{vars{"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "Open MPI",
			3, 4, false},
		{vars{"PMI_RANK": "1", "PMI_SIZE": "4"}, "mpiexec", 1, 4, false},
		{vars{"MV2_COMM_WORLD_RANK": "2", "MV2_COMM_WORLD_SIZE": "4", "MV2_COMM_WORLD_LOCAL_SIZE": "4"}, "mpirun_rsh",
			2, 4, true},
		{vars{"RANK": "0", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4"}, "torchrun", 0, 4, true},
		{vars{"WORLD_SIZE": "4"}, "", 0, 0, false},
		{vars{"RANK": "4", "WORLD_SIZE": "4"}, "", 0, 0, false},
		{vars{"RANK": "x", "WORLD_SIZE": "4"}, "", 0, 0, false},
		{vars{"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_NUM_NODES": "1"},
			"srun", 5, 6, true},
		{vars{"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_NUM_NODES": "2"},
			"srun", 5, 6, false},
		{vars{"SLURM_STEP_ID": "interactive", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "6"}, "", 0, 0, false},
		{vars{"SLURM_JOB_ID": "12", "SLURM_PROCID": "0", "SLURM_NTASKS": "6"}, "", 0, 0, false},
		// One torchrun per node, started by srun: the step has tasks of its own.
		{vars{"RANK": "5", "WORLD_SIZE": "8", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
			"torchrun", 5, 8, false},
		// prterun has started its daemons by srun.
		{vars{"PMIX_RANK": "1", "PMIX_NAMESPACE": "prterun-vm-7@1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1",
			"SLURM_STEP_NUM_TASKS": "2"}, "", 0, 0, false},
		// A child of such a rank, and a task of a step that the child has started.
		{vars{"GOMPI_JOINED": "7.0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1",
			"SLURM_STEP_NUM_TASKS": "2"}, "", 0, 0, false},
		{vars{"GOMPI_JOINED": "7.0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1", "SLURM_PROCID": "1",
			"SLURM_STEP_NUM_TASKS": "2"}, "srun", 1, 2, false},
		{vars{"PMIX_RANK": "1", "PMIX_NAMESPACE": "slurm.pmix.5.0", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1",
			"SLURM_STEP_NUM_TASKS": "2"}, "srun", 1, 2, false},
		// Several that agree are one.
		{vars{"PMI_RANK": "1", "PMI_SIZE": "4", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"},
			"mpiexec", 1, 4, false},
		{vars{"RANK": "1", "WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "Open MPI",
			1, 2, false},
		// Variables left in an image count for nothing beside a launcher.
		{vars{"RANK": "0", "WORLD_SIZE": "1", "PMI_RANK": "2", "PMI_SIZE": "4"}, "mpiexec", 2, 4, false},
		{vars{"GOMPI_RANK": "1", "GOMPI_SIZE": "2", "RANK": "1", "WORLD_SIZE": "2"}, "gompirun", 1, 2, false},
	}
	for _, tt := range tests {
		p, err := find(func(name string) string { return tt.env[name] })
		switch {
		case err != nil:
			t.Errorf("%v: %v", tt.env, err)
		case p == nil:
			if tt.by != "" {
				t.Errorf("%v: no launcher, want %s", tt.env, tt.by)
			}
		case tt.by == "" || !strings.Contains(p.name, tt.by) || p.rank != tt.rank || p.size != tt.size ||
			p.local != tt.local:
			t.Errorf("%v: rank %d of %d, local %v, by %s; want %d of %d, %v, by %q", tt.env, p.rank, p.size, p.local,
				p.name, tt.rank, tt.size, tt.local, tt.by)
		}
	}
}

func TestLaunchersThatDisagreeAreBothNamed(t *testing.T) {
	env := map[string]string{"RANK": "0", "WORLD_SIZE": "2", "PMI_RANK": "3", "PMI_SIZE": "4"}
	_, err := find(func(name string) string { return env[name] })
	for _, want := range []string{"mpiexec", "rank 3 of 4 (PMI_RANK, PMI_SIZE)", "torchrun",
		"rank 0 of 2 (RANK, WORLD_SIZE)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestRankZeroAloneReportsInFull(t *testing.T) {
	for rank, want := range []string{"set GOMPI_RDZV to file:// and a folder",
		"see the error of rank 0 (if none was started, and SLURM_PROCID is left over: unset it"} {
		env := map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": string(rune('0' + rank)),
			"SLURM_STEP_NUM_TASKS": "2"}
		p, err := find(func(name string) string { return env[name] })
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		text := p.refusal().Error()
		if !strings.Contains(text, want) || strings.Contains(text, "\n") ||
			(rank == 0) != strings.Contains(text, "srun --mpi=pmi2") {
			t.Errorf("rank %d: %q, want one line with %q, and rank 0's with srun's", rank, text, want)
		}
	}
}

func TestLaunchersSayWhichProgramARankRuns(t *testing.T) {
	for rank, want := range []string{"0", "0", "2", "2", "2"} { // the second has no ranks
		env := map[string]string{"OMPI_COMM_WORLD_RANK": fmt.Sprint(rank), "OMPI_COMM_WORLD_SIZE": "5",
			"OMPI_APP_CTX_NUM_PROCS": "2 0 3"}
		p, err := find(func(name string) string { return env[name] })
		if err != nil || fmt.Sprint(p.program) != want {
			t.Errorf("rank %d: program %d, %v; want %s", rank, p.program, err, want)
		}
	}
}

// A launcher that this test has not: the library is missing, has no server to connect to, or
// cannot be opened without C.
func TestRanksThatCannotMeetOverPMIxSaySo(t *testing.T) {
	t.Setenv("PMIX_RANK", "1")
	t.Setenv("PMIX_NAMESPACE", "nobody@1")
	for _, p := range []*place{nil, {launcher: launcher{name: "srun"}, rank: 1, size: 2}} {
		b, err := openPMIx(t.Context(), p)
		if err == nil || !strings.HasPrefix(err.Error(), "started as rank 1 of nobody@1 by a launcher that speaks PMIx") {
			t.Errorf("%v, %v; want an error that names the rank and the job", b, err)
		}
		if err != nil && !strings.Contains(err.Error(), "or set GOMPI_BOOT=alone") {
			t.Errorf("error %v: want what to do instead", err)
		}
	}
}
