package cli

import (
	"strconv"
	"strings"
)

// openMPI5Habits returns flags new in Open MPI 5.
func openMPI5Habits() []Habit {
	const memory = "each call finds out itself in what memory its vectors are"
	const environment = "ranks have gompirun's environment; type -x NAME=VALUE, or env -u NAME before gompirun"
	return []Habit{
		{Names: []string{"runtime-options"}, Args: 1, To: runtimeOptions,
			Instead: "want donotlaunch, recoverable, max-restarts=N, timeout=T, spawn-timeout=T or get-stack-traces of it"},
		{Names: []string{"app-prefix", "pmix-prefix", "app-pmix-prefix"}, Args: 1, Why: prefix},
		{Names: []string{"no-app-prefix"}, Why: noPrefix},
		{Names: []string{"memory-alloc-kind", "memory-alloc-kinds", "gpu-support"}, Args: 1, Why: memory},
		{Names: []string{"pset", "initial-errhandler"}, Args: 1,
			Why: "gompi has no process sets, and its calls return errors"},
		{Names: []string{"tmpdir"}, Args: 1, Why: "gompirun keeps no files of a session"},
		{Names: []string{"forward-signals"}, Args: 1, Why: forwards},
		{Names: []string{"set-sid", "no-ready-msg", "system-server"}, Why: daemons},
		{Names: []string{"keepalive", "singleton"}, Args: 1, Why: daemons},
		{Names: []string{"add-host", "add-hostfile"}, Args: 1, Instead: "type all hosts in -H LIST or -hostfile F"},
		{Names: []string{"unset-env"}, Args: 1, Instead: environment},
		{Names: []string{"append-env", "prepend-env"}, Args: 2, Instead: environment},
		{Names: []string{"fwd-environment"}, To: unlessFalse, Instead: environment},
		{Names: []string{"no-aggregate-help"}, To: always()},
		{Names: []string{"parsable", "parseable"}, Why: "what gompirun prints has one form"},
		{Names: []string{"display-comm", "display-comm-finalize"}, Why: traffic},
		{Names: []string{"soft"}, May: isTriplets, Why: "-np says how many ranks"},
		{Names: []string{"arch", "file"}, Args: 1, Why: "-H and -hostfile say which hosts"},
		{Names: []string{"stop-on-exec", "stop-in-init", "stop-in-app"}, Instead: debugger},
	}
}

// unlessFalse accepts a switch that is always on in gompirun, unless it is turned off.
func unlessFalse(args []string) []string {
	if len(args) > 0 && !isTrue(args[0]) {
		return nil
	}
	return []string{}
}

// isTriplets reports whether a word is an argument of the MPI standard's -soft: 2, 2:8 or 2:8:2,
// separated by commas.
func isTriplets(word string) bool { return word != "" && strings.Trim(word, "0123456789:,-") == "" }

// runtimeOptions translates --runtime-options recoverable,max-restarts=2.
func runtimeOptions(args []string) []string {
	flags := []string{}
	for option := range strings.SplitSeq(strings.ToLower(args[0]), ",") {
		key, value, given := strings.Cut(option, "=")
		flag := map[string]string{
			"donotlaunch": "-do-not-launch", "recoverable": "-recover", "get-stack-traces": "-get-stack-traces",
			"max-restarts": "-max-restarts", "timeout": "-timeout", "spawn-timeout": "-start-timeout",
		}[key]
		switch key {
		case "max-restarts":
			flags = append(flags, flag, value)
		case "timeout", "spawn-timeout":
			seconds, ok := clockSeconds(value)
			if !ok {
				return nil
			}
			flags = append(flags, flag, seconds)
		case "donotlaunch", "recoverable", "get-stack-traces":
			if !given || isTrue(value) {
				flags = append(flags, flag)
			}
		case "show-progress", "report-state-on-timeout", "aggregate-help-messages": // reported in any case
		case "error-nonzero-status", "fwd-environment":
			if given && !isTrue(value) {
				return nil // always on
			}
		default:
			return nil
		}
	}
	return flags
}

// isTrue reads a truth value as Open MPI does: a number other than 0, or the beginning of "true".
func isTrue(value string) bool {
	n, err := strconv.Atoi(value)
	return err == nil && n != 0 || value != "" && strings.HasPrefix("true", value)
}

// clockSeconds reads a time like 1:20:13:05, in days, hours, minutes and seconds. Leading fields
// may be missing.
func clockSeconds(clock string) (seconds string, ok bool) {
	fields, total := strings.Split(clock, ":"), 0
	for i, field := range fields {
		n, err := strconv.ParseUint(field, 10, 16)
		if err != nil || len(fields) > 4 {
			if len(fields) == 1 {
				return clock, clock != "" // seconds, or a value that -timeout will reject
			}
			return "", false
		}
		unit := []int{1, 60, 3600, 86400}[len(fields)-1-i]
		total += int(n) * unit
	}
	return strconv.Itoa(total), true
}
