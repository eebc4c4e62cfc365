package launchenv

import (
	"slices"
)

// ofHost are variables, or beginnings of them, that belong to a host and its
// login. Ranks get those of their host, not of the launcher's.
var ofHost = []string{
	"HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL=", "HOSTNAME=", "PWD=", "OLDPWD=", "SHLVL=", "_=",
	"DISPLAY=", "WAYLAND_DISPLAY=", "XAUTHORITY=", "XDG_", "SSH_", "DBUS_", "TERM_SESSION_ID=", "TMUX", "STY=", "WINDOWID=",
}

// ofLogin are those of them that describe the login of the agent, which is no
// session of the user's.
var ofLogin = []string{"PWD=", "OLDPWD=", "SHLVL=", "_=", "SSH_", "XDG_SESSION_"}

// ofThisHost are variables that a batch system sets on each host for itself:
// what they say on the launcher's host is wrong here.
var ofThisHost = []string{
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
	"SLURMD_NODENAME", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE", "SLURM_TOPOLOGY_ADDR",
}

// OnHost returns what the ranks of one host find around them. launched are the
// variables that gompirun hands on, own those that the agent was started with. On
// the launcher's host ranks get what is launched; on another, remote, what that
// host has itself and of the launched what makes sense there, as far as isDir
// says.
func OnHost(launched, own []string, remote bool, isDir func(path string) bool) []string {
	here := slices.DeleteFunc(slices.Clone(own), func(kv string) bool { return !slices.Contains(ofThisHost, nameOf(kv)) })
	if !remote {
		return Merge(launched, here)
	}
	launched = without(launched, ofHost)
	if tmp, _ := Value(launched, "TMPDIR"); tmp != "" && !isDir(tmp) {
		launched = without(launched, []string{"TMPDIR="})
	}
	return Merge(without(Forward(own), ofLogin), launched, here)
}
