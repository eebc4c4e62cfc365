package pmix

import (
	"os"
	"testing"
)

// prterun sets a rank, and no number of ranks.
func TestALauncherThatSpeaksPMIxIsSeen(t *testing.T) {
	type vars = map[string]string
	for _, tt := range []struct {
		env  vars
		want bool
	}{
		{vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "prterun-vm-7@1"}, true},
		{vars{"PMIX_RANK": "1", "PMIX_NAMESPACE": "x"}, true},
		{vars{"PMIX_RANK": "0"}, false},
		{vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "x", "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, false},
		{vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.5.0", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0",
			"SLURM_STEP_NUM_TASKS": "1"}, false},
		// prterun in a step of one task, and in an image that has torchrun's variables.
		{vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "prterun-vm-7@1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0",
			"SLURM_STEP_NUM_TASKS": "1"}, true},
		{vars{"PMIX_RANK": "0", "PMIX_NAMESPACE": "prterun-vm-7@1", "RANK": "0", "WORLD_SIZE": "1"}, true},
		{nil, false},
	} {
		if got := Visible(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.env, got, tt.want)
		}
	}
}

func TestChildrenKnowTheStepOfTheirLauncher(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "7")
	t.Setenv("SLURM_STEP_ID", "0")
	for job, in := range map[string]bool{"prterun-vm-7@1": true, "slurm.pmix.7.0": false} {
		t.Setenv("GOMPI_JOINED", "")
		t.Setenv(EnvRank, "0")
		t.Setenv(EnvJob, job)
		if leaveToChildren(); InStep(os.Getenv) != in || Visible(os.Getenv) || os.Getenv(EnvJob) != "" {
			t.Errorf("%s: in its step %v, want %v; a rank %v, want none", job, InStep(os.Getenv), in, Visible(os.Getenv))
		}
	}
}
