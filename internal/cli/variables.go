package cli

import (
	"slices"
	"strings"
)

// Users of other launchers set some things in the environment instead of typing
// them. What follows is the table of that.

// torchFlags are torchrun's flags whose defaults it takes from the environment,
// as PET_NNODES for --nnodes: those with a value, and those without.
var (
	torchValues = []string{
		"nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts",
		"log-dir", "tee", "node-rank", "master-addr", "master-port", "local-addr",
		"shutdown-timeout", "log-line-prefix-template",
	}
	torchSwitches = []string{"standalone", "module", "no-python"}
)

// TorchVariables returns the flags that torchrun's users have set in the
// environment, to stand before those that they type, and says so in one line.
func TorchVariables(lookup func(string) (string, bool), note func(line string)) []string {
	var flags, names []string
	for _, flag := range slices.Concat(torchValues, torchSwitches) {
		name := "PET_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		value, _ := lookup(name)
		isSwitch := slices.Contains(torchSwitches, flag)
		switch {
		case value == "", isSwitch && value == "0":
			continue
		case isSwitch:
			flags = append(flags, "-"+flag)
		default:
			flags = append(flags, "-"+flag+"="+value)
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		note("gompirun: " + strings.Join(names, ", ") + ": as " + strings.Join(flags, " "))
	}
	return flags
}

// Variables in which users of Open MPI, hydra and Intel's mpiexec say what logs in
// to other hosts, and with which arguments.
var (
	loginCommands = []string{"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}
	loginArgs     = []string{"OMPI_MCA_plm_rsh_args", "OMPI_MCA_plm_ssh_args", "PRTE_MCA_plm_ssh_args", "HYDRA_LAUNCHER_EXTRA_ARGS", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"}
)

// LoginVariables returns the command that logs in to other hosts as the
// environment says it, and by which variables; "" if it says nothing.
func LoginVariables(getenv func(string) string) (command string, from string) {
	first := func(names []string) (value, name string) {
		for _, name := range names {
			if value := getenv(name); value != "" {
				return value, name
			}
		}
		return "", ""
	}
	command, from = first(loginCommands)
	command, _, _ = strings.Cut(command, ":") // Open MPI takes the first of a list that it finds
	command = strings.TrimSpace(command)
	args, name := first(loginArgs)
	switch {
	case args == "":
	case command == "":
		command, from = "ssh "+args, name
	default:
		command, from = command+" "+args, from+", "+name
	}
	return command, from
}
