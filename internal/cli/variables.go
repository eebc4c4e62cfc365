package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Variables by which users of other launchers set flags.

// torchFlags are torchrun's flags that have defaults in the environment, as PET_NNODES for
// --nnodes: with a value, and without.
var (
	torchValues = []string{
		"nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "max-restarts",
		"monitor-interval",
		"start-method", "event-log-handler", "role", "log-dir", "redirects", "tee", "log-line-prefix-template",
		"local-ranks-filter", "duplicate-stdout-filters", "duplicate-stderr-filters", "node-rank", "master-addr",
		"master-port",
		"local-addr", "signals-to-handle", "shutdown-timeout",
	}
	torchSwitches = []string{"standalone", "module", "no-python", "run-path", "virtual-local-rank"}
)

// torchOthers are other variables for torchrun's flags, used if the PET_ variable is unset.
var torchOthers = map[string]string{
	"shutdown-timeout":         "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
	"log-line-prefix-template": "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
}

// A Variable is an environment variable for a flag of another launcher.
type Variable struct {
	Name, Value string
	Flag        string // the equivalent flag
	Wrong       error  // error of the value of a flag without values
}

// TorchVariables returns the variables that torchrun's users have set. Empty values count as
// unset.
func TorchVariables(lookup func(string) (string, bool)) (set []Variable) {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if value, _ := lookup(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	for _, flag := range slices.Concat(torchValues, torchSwitches) {
		name, value := first("PET_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), torchOthers[flag])
		v := Variable{Name: name, Value: value, Flag: "-" + flag + "=" + value}
		if slices.Contains(torchSwitches, flag) {
			v.Flag = "-" + flag
			if n, err := strconv.Atoi(value); err != nil {
				v.Wrong = errors.New("want 1 or 0")
			} else if n == 0 {
				continue
			}
		}
		if value != "" {
			set = append(set, v)
		}
	}
	return set
}

// Variables of Open MPI, hydra and Intel's mpiexec with the login command for other hosts, and
// with its arguments.
var (
	loginCommands = []string{"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_agent",
		"HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"}
	loginArgs = []string{"OMPI_MCA_plm_rsh_args", "OMPI_MCA_plm_ssh_args", "PRTE_MCA_plm_ssh_args",
		"HYDRA_LAUNCHER_EXTRA_ARGS", "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"}
)

// LoginVariables returns the environment's login command for other hosts and its variables, "" if
// there is none.
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
	command, _, _ = strings.Cut(command, ":") // Open MPI uses the first of a list that it finds
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
