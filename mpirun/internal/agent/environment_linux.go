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
	p := &a.preparation
	if len(a.launch.Hosts) > 1 {
		if err := reachable(a.launch.MasterAddr); err != nil {
			p.warn("programs that meet at MASTER_ADDR=%s, as those of torch do, do not find it from here: %v: want an address by which this host reaches that of rank 0 in -master-addr", a.launch.MasterAddr, err)
		}
	}
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
		p.warn("there is no directory %s here: its ranks start in %s", missing, p.dir)
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
