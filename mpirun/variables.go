package mpirun

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/env"
)

// strangers are variables, or beginnings of them, by which other launchers tell
// a process that it is one of their ranks. A rank of ours is not.
var strangers = [...]string{
	"PMI_", "PMIX_", "PRTE_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "HYDRA_", "HYDI_", "MPI_LOCAL",
	"GROUP_RANK=", "GROUP_WORLD_SIZE=", "ROLE_RANK=", "ROLE_NAME=", "ROLE_WORLD_SIZE=", "TORCHELASTIC_",
	"HOROVOD_RANK=", "HOROVOD_SIZE=", "HOROVOD_LOCAL_", "PALS_RANKID=", "PALS_LOCAL_RANKID=",
	"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_GTIDS=", "SLURM_STEP_NUM_TASKS=",
}

// forwarded returns the variables that ranks get: all of vars but those that
// tell a process which rank it is, of this launcher, if a rank called it, or of
// another.
func forwarded(vars []string) []string {
	own := map[string]bool{}
	for _, v := range env.Table() {
		own[v.Name] = v.Set && v.Default == "" || v.Name == env.Token // what has a default may be the user's
	}
	var out []string
	for _, kv := range vars {
		name, _, _ := strings.Cut(kv, "=")
		if !own[name] && !isStranger(kv) {
			out = append(out, kv)
		}
	}
	return out
}

// environment returns the variables that are the same for all ranks: those of
// gompirun itself that are handed on, and what flags say.
func (j *job) environment(vars []string) []string {
	out := append(forwarded(vars), fmt.Sprintf("%s=%d", env.StartNS, j.begun.UnixNano()))
	out = append(out, j.lifeEnvironment()...)
	if !slices.ContainsFunc(out, func(kv string) bool { return strings.HasPrefix(kv, env.Unbuffered+"=") }) {
		out = append(out, env.Unbuffered+"=1")
	}
	for _, v := range []struct{ name, value string }{
		{env.PortRange, j.portRange},
		{env.Iface, j.interfaces},
	} {
		if v.value != "" {
			out = slices.DeleteFunc(out, func(kv string) bool { return strings.HasPrefix(kv, v.name+"=") })
			out = append(out, v.name+"="+v.value)
		}
	}
	return out
}

func isStranger(kv string) bool {
	for _, s := range strangers {
		if strings.HasPrefix(kv, s) {
			return true
		}
	}
	return false
}
