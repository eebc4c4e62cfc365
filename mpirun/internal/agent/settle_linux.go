package agent

import (
	"os"
	"slices"
	"strings"

	"gompi/mpirun/internal/ctl"
)

// ofHost are variables, or beginnings of them, that belong to a host and its
// login. Ranks get those of their host, not of the launcher's.
var ofHost = [...]string{
	"HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL=", "HOSTNAME=", "PWD=", "OLDPWD=", "SHLVL=", "_=",
	"DISPLAY=", "WAYLAND_DISPLAY=", "XAUTHORITY=", "XDG_", "SSH_", "DBUS_", "TERM_SESSION_ID=", "TMUX", "STY=", "WINDOWID=",
}

// ofLogin are those of them that describe the login of the agent, which is no
// session of the user's.
var ofLogin = [...]string{"PWD=", "OLDPWD=", "SHLVL=", "_=", "SSH_", "XDG_SESSION_"}

// settle decides what ranks find around them: on the launcher's host what it has
// itself, on another the same, as far as it makes sense there.
func (a *agent) settle() {
	own := os.Environ()
	if !a.launch.Remote {
		a.vars = merge(a.launch.Env, hostVariables(own))
		return
	}
	a.vars = merge(merge(without(own, ofLogin[:]), a.toHere(a.launch.Env)), hostVariables(own))
	a.dir = a.launch.Dir
	if isDir(a.dir) {
		return
	}
	missing := a.dir
	if a.dir = valueOf(a.vars, "HOME"); !isDir(a.dir) {
		a.dir = "/"
	}
	if slices.ContainsFunc(a.launch.Ranks, func(r ctl.Rank) bool { return a.launch.Programs[r.Program].Wdir == "" }) {
		a.note("there is no directory %s here: its ranks start in %s", missing, a.dir)
	}
}

// toHere returns the launcher's variables that mean something on this host.
func (a *agent) toHere(vars []string) []string {
	vars = without(vars, ofHost[:])
	if tmp := valueOf(vars, "TMPDIR"); tmp != "" && !isDir(tmp) {
		vars = without(vars, []string{"TMPDIR="})
	}
	return vars
}

// without returns vars without those that begin like one of starts.
func without(vars []string, starts []string) []string {
	return slices.DeleteFunc(slices.Clone(vars), func(kv string) bool {
		return slices.ContainsFunc(starts, func(s string) bool { return strings.HasPrefix(kv, s) })
	})
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
