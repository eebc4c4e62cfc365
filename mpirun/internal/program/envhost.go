package program

import (
	"slices"
)

// ofHost are variables, or prefixes, that belong to a host and its login. Ranks get their own
// host's values, not the launcher's.
var ofHost = []string{
	"HOME=", "USER=", "LOGNAME=", "SHELL=", "MAIL=", "HOSTNAME=", "PWD=", "OLDPWD=", "SHLVL=", "_=",
	"DISPLAY=", "WAYLAND_DISPLAY=", "XAUTHORITY=", "XDG_", "SSH_", "DBUS_", "TERM_SESSION_ID=", "TMUX", "STY=",
	"WINDOWID=",
}

// ofLogin are the variables of ofHost that describe the agent's login, which is no session of the
// user.
var ofLogin = []string{"PWD=", "OLDPWD=", "SHLVL=", "_=", "SSH_", "XDG_SESSION_"}

// ofThisHost are variables that a batch system sets on each host for itself: the launcher's
// values are wrong on other hosts.
var ofThisHost = []string{
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
	"SLURMD_NODENAME", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE", "SLURM_TOPOLOGY_ADDR",
}

// hostEnv returns the environment of the ranks of one host. launched are the launcher's variables,
// own the agent's initial ones. If remote, ranks get own, and the variables of launched that are
// valid there: isDir reports whether TMPDIR exists. Otherwise they get launched. Variables that a
// batch system sets per host always come from own.
func hostEnv(launched, own []string, remote bool, isDir func(path string) bool) []string {
	here := slices.DeleteFunc(slices.Clone(own),
		func(kv string) bool { return !slices.Contains(ofThisHost, envName(kv)) })
	if !remote {
		return MergeEnv(launched, here)
	}
	launched = without(launched, ofHost)
	if tmp, _ := EnvValue(launched, "TMPDIR"); tmp != "" && !isDir(tmp) {
		launched = without(launched, []string{"TMPDIR="})
	}
	return MergeEnv(without(ForwardedEnv(own), ofLogin), launched, here)
}
