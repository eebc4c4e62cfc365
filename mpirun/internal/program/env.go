package program

import (
	"slices"
	"strings"

	"gompi/internal/env"
)

// The environment of a rank comes from several places: gompirun's own environment, the host's, -x,
// and gompirun itself. The identity of a rank (RANK, MASTER_ADDR, SLURM_PROCID and so on) is
// gompirun's; all other variables are the user's, and gompirun only has defaults.

// MergeEnv returns the variables of all layers, each name once, with the value of the last layer
// that has the name, and the last value within that layer.
func MergeEnv(layers ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, kv := range slices.Concat(layers...) {
		name := envName(kv)
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// EnvValue returns the value of a variable, the last if there are several, and whether it is set.
func EnvValue(vars []string, name string) (string, bool) {
	for _, kv := range slices.Backward(vars) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func envName(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// otherLaunchers are variables, or prefixes, by which other launchers mark their own ranks, which
// ours are not.
var otherLaunchers = []string{
	"PMI_", "PMIX_", "PRTE_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "OMPI_APP_CTX_NUM_PROCS=", "MV2_COMM_WORLD_",
	"HYDRA_", "HYDI_", "MPI_LOCAL",
	"TORCHELASTIC_", "HOROVOD_RANK=", "HOROVOD_SIZE=", "HOROVOD_LOCAL_", "PALS_RANKID=", "PALS_LOCAL_RANKID=",
	"SLURM_TASK_PID=",
}

// ForwardedEnv returns the variables that ranks may get: vars without the variables by which this or
// another launcher gives a process its rank. A rank that calls gompirun has such variables.
func ForwardedEnv(vars []string) []string {
	own := map[string]bool{}
	for _, v := range env.Table() {
		own[v.Name] = v.Set && v.Default == "" || v.Name == env.Token // with a default: perhaps the user's
	}
	return slices.DeleteFunc(without(vars, otherLaunchers), func(kv string) bool { return own[envName(kv)] })
}

// without returns vars without the variables that begin like one of starts.
func without(vars, starts []string) []string {
	return slices.DeleteFunc(slices.Clone(vars), func(kv string) bool {
		return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(kv, s) })
	})
}
