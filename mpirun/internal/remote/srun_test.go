package remote

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestGRESOfEachNodeIsRead(t *testing.T) {
	tests := []struct {
		name, in string
		want     map[string]string
	}{
		{"nothing", "", map[string]string{}},
		{"no GPUs", "JobId=1 JobName=x\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=\n", map[string]string{}},
		{"equal nodes", "   TRES=cpu=2\n     Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)\n   TresPerJob=gres:gpu:4\n",
			map[string]string{"n1": "gpu:2", "n2": "gpu:2"}},
		{"unequal, typed", "  Nodes=a CPU_IDs=0 Mem=0 GRES=gpu:v100:3(IDX:0-2)\n  Nodes=b CPU_IDs=0 Mem=0 GRES=gpu:v100:1(IDX:3)\n",
			map[string]string{"a": "gpu:v100:3", "b": "gpu:v100:1"}},
		{"several kinds", " Nodes=a GRES=gpu:2(IDX:0,2),nic:1(IDX:0)\n", map[string]string{"a": "gpu:2,nic:1"}},
		{"a list that cannot be read", " Nodes=a[1- GRES=gpu:2\n", map[string]string{}},
	}
	for _, tt := range tests {
		if got := parseGRES(tt.in); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func FuzzGRES(f *testing.F) {
	f.Add("  Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:v100:2(IDX:0-1)\n")
	f.Add("Nodes=a GRES=)gpu(:2)")
	f.Fuzz(func(t *testing.T, text string) {
		for node, gres := range parseGRES(text) {
			if node == "" || gres == "" || strings.ContainsAny(gres, " \n()") &&
				strings.Count(text, ")") == strings.Count(text, "(") {
				t.Errorf("%q: %q has %q", text, node, gres)
			}
		}
	})
}

// A job's options describe the whole job; the step of an agent is to have all
// of its node, and to write to nothing but the channel.
func TestSrunDoesNotGetTheJobsOptions(t *testing.T) {
	in := []string{"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_CPUS_PER_TASK=2", "SLURM_GPUS=4", "SLURM_LABELIO=1",
		"SSH_CONNECTION=10.0.0.1 2 10.0.0.2 22", "SLURM_GPUS_ON_NODE=2"}
	want := []string{"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_GPUS_ON_NODE=2", "SLURM_OVERLAP=1"}
	if got := srunEnv(in); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if slices.Contains(in, "SLURM_OVERLAP=1") || len(in) != 7 {
		t.Errorf("the environment itself has become %q", in)
	}
}

func TestGPUsAreAskedForOnlyWhereSlurmDoesNotHandThemDown(t *testing.T) {
	for in, want := range map[string]bool{
		"SLURM_GPUS=4": true, "SLURM_GPUS_PER_TASK=1": true, "SLURM_NTASKS_PER_GPU=1": true,
		"SLURM_GPUS_PER_NODE=2": false, "SLURM_GPUS_ON_NODE=2": false, "SLURM_JOB_ID=4": false,
	} {
		if got := countsGPUs([]string{"A=B", in}); got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}
