package agent

import (
	"fmt"
	"os"
	"slices"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/launchenv"
)

// setEnvironment sets the environment and working directory of the ranks: those of the launcher, on
// another host as far as they make sense there.
func (a *agent) setEnvironment() {
	p := &a.preparation
	p.vars = launchenv.OnHost(a.launch.Env, os.Environ(), a.launch.Remote, isDir)
	if !a.launch.Remote {
		return
	}
	p.dir = a.launch.Dir
	if isDir(p.dir) {
		return
	}
	missing := p.dir
	if p.dir, _ = launchenv.Value(p.vars, "HOME"); !isDir(p.dir) {
		p.dir = "/"
	}
	if slices.ContainsFunc(a.launch.Ranks, func(r ctl.Rank) bool { return a.launch.Programs[r.Program].Wdir == "" }) {
		p.warning = fmt.Sprintf("there is no directory %s here: its ranks start in %s", missing, p.dir)
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
