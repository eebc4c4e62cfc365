package agent

import (
	"os"
	"slices"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
)

// setEnvironment sets the environment and working directory of the ranks: those of the launcher, on
// another host as far as they make sense there.
func (a *agent) setEnvironment() {
	a.vars = launchenv.OnHost(a.launch.Env, os.Environ(), a.launch.Remote, isDir)
	if !a.launch.Remote {
		return
	}
	a.dir = a.launch.Dir
	if isDir(a.dir) {
		return
	}
	missing := a.dir
	if a.dir, _ = launchenv.Value(a.vars, "HOME"); !isDir(a.dir) {
		a.dir = "/"
	}
	if slices.ContainsFunc(a.launch.Ranks, func(r ctl.Rank) bool { return a.launch.Programs[r.Program].Wdir == "" }) {
		a.note("there is no directory %s here: its ranks start in %s", missing, a.dir)
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
