package agent

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/env"
)

// ofThisHost are variables that a batch system sets on each host for itself:
// what they say on the launcher's host is wrong here.
var ofThisHost = []string{
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
	"SLURMD_NODENAME", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE", "SLURM_TOPOLOGY_ADDR",
}

// hostVariables returns those variables of ofThisHost that the agent, whose
// environment is vars, was started with.
func hostVariables(vars []string) []string {
	return slices.DeleteFunc(slices.Clone(vars), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(ofThisHost, name)
	})
}

// slurmVariables returns what srun would tell p's process, if the job is one of
// Slurm: many scripts find their rank by it, and what a batch script sees says
// that everybody is the first.
func (a *agent) slurmVariables(p *process) []string {
	if valueOf(a.launch.Env, "SLURM_JOB_ID") == "" {
		return nil
	}
	return []string{
		fmt.Sprintf("%s=%d", env.SlurmRank, p.Rank.Rank), fmt.Sprintf("%s=%d", env.SlurmSize, a.launch.Size),
		fmt.Sprintf("%s=%d", env.SlurmLocalRank, p.index), fmt.Sprintf("%s=%d", env.SlurmNode, a.launch.Node),
	}
}
