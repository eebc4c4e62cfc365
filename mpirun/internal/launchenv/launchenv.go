// Package launchenv makes the environment of a rank. It is pure.
//
// Variables come from several places: gompirun's own environment, the
// host's, -x, and gompirun itself. Merge puts them together, each name once.
// What identifies a rank (RANK, MASTER_ADDR, SLURM_PROCID and so on) is
// gompirun's; everything else is the user's, and gompirun only has defaults.
package launchenv

import (
	"slices"
	"strings"

	"gompi/internal/env"
)

// Merge returns the variables of all layers, each name once, with the value
// that the last of the layers gives it. A name that one layer has twice has its
// last value there.
func Merge(layers ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, kv := range slices.Concat(layers...) {
		name := nameOf(kv)
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// Value returns the value of a variable, the last if there are several, and
// whether there is one.
func Value(vars []string, name string) (string, bool) {
	for _, kv := range slices.Backward(vars) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func nameOf(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// otherLaunchers are variables, or beginnings of them, by which other launchers mark a process as
// one of their ranks. A rank of ours is not.
var otherLaunchers = []string{
	"PMI_", "PMIX_", "PRTE_", "OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "OMPI_APP_CTX_NUM_PROCS=", "MV2_COMM_WORLD_", "HYDRA_", "HYDI_", "MPI_LOCAL",
	"TORCHELASTIC_", "HOROVOD_RANK=", "HOROVOD_SIZE=", "HOROVOD_LOCAL_", "PALS_RANKID=", "PALS_LOCAL_RANKID=",
	"SLURM_TASK_PID=",
}

// Forward returns the variables that ranks may get: vars without those in which this or another
// launcher gives a process its rank. A rank that calls gompirun has such variables.
func Forward(vars []string) []string {
	own := map[string]bool{}
	for _, v := range env.Table() {
		own[v.Name] = v.Set && v.Default == "" || v.Name == env.Token // what has a default may be the user's
	}
	return slices.DeleteFunc(without(vars, otherLaunchers), func(kv string) bool { return own[nameOf(kv)] })
}

// without returns vars without those that begin like one of starts.
func without(vars, starts []string) []string {
	return slices.DeleteFunc(slices.Clone(vars), func(kv string) bool {
		return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(kv, s) })
	})
}
