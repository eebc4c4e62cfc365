package cli

import (
	"os"
	"strconv"
	"strings"
)

// torchHabits returns the flags of torchrun that gompirun lacks.
func torchHabits() []Habit {
	const files = "-output-filename DIR keeps what each rank writes in files, too"
	return []Habit{
		{Names: []string{"rdzv-backend"}, Args: 1, To: ownBackends, Why: "the nodes of a job meet at gompirun"},
		{Names: []string{"rdzv-conf"}, Args: 1, To: rendezvousTimes,
			Why: "want join_timeout or last_call_timeout of it"},
		{Names: []string{"monitor-interval"}, Args: 1, Why: "gompirun is notified at once when a rank ends"},
		{Names: []string{"start-method"}, Args: 1, Why: "every rank is a process of its own"},
		{Names: []string{"role"}, Args: 1, Why: "every rank has the role default"},
		{Names: []string{"local-addr"}, Args: 1, Why: "-iface says which addresses to use"},
		{Names: []string{"use-env"}, Why: "ranks always get LOCAL_RANK"},
		{Names: []string{"run-path"}, Why: "every rank is a process of its own"},
		{Names: []string{"tee"}, Args: 1, To: unlessZero("-tag-output"), Why: "output is always shown"},
		{Names: []string{"t"}, Args: 1, To: teeOrTime, Instead: "torchrun's -t takes 0 to 3, or as in 0:3,1:1; " +
			"for a time limit, as srun's -t is, type -timeout and seconds, or as in 10m"},
		{Names: []string{"redirects", "r", "logs-specs", "duplicate-stdout-filters", "duplicate-stderr-filters"},
			Args: 1, Why: files},
		{Names: []string{"log-line-prefix-template"}, Args: 1, To: linePrefix},
		{Names: []string{"event-log-handler"}, Args: 1, Why: verbose},
		{Names: []string{"signals-to-handle"}, Args: 1, Why: forwards},
		{Names: []string{"numa-binding"}, Args: 1, To: always("-bind-to", "gpu")},
		{Names: []string{"print-completion"}, Args: 1,
			Instead: "type gompirun completion bash, zsh or fish"},
	}
}

// ownBackends accepts rendezvous backends that gompirun has, too.
func ownBackends(args []string) []string {
	if args[0] == "c10d" || args[0] == "static" {
		return []string{}
	}
	return nil
}

// rendezvousTimes translates --rdzv-conf join_timeout=600,last_call_timeout=30.
func rendezvousTimes(args []string) []string {
	var flags []string
	for setting := range strings.SplitSeq(args[0], ",") {
		switch key, value, _ := strings.Cut(setting, "="); strings.TrimSpace(key) {
		case "join_timeout":
			flags = append(flags, "-start-timeout", value)
		case "last_call_timeout":
			flags = append(flags, "-last-call", value)
		}
	}
	return flags
}

func unlessZero(flag string) func([]string) []string {
	return func(args []string) []string {
		if args[0] == "0" {
			return nil
		}
		return []string{flag}
	}
}

// teeOrTime translates torchrun's -t. In srun it is a time.
func teeOrTime(args []string) []string {
	if args[0] == "0" {
		return []string{}
	}
	for part := range strings.SplitSeq(args[0], ",") {
		rank, stream, both := strings.Cut(part, ":")
		if !both && part == args[0] {
			rank, stream = "0", part
		}
		if _, err := strconv.ParseUint(rank, 10, 31); err != nil || len(stream) != 1 ||
			!strings.Contains("0123", stream) {
			return nil
		}
	}
	return []string{"-tag-output"}
}

// linePrefix translates --log-line-prefix-template '${hostname}:${rank}: '. As in Python's
// templates, unknown names stay as they are.
func linePrefix(args []string) []string {
	known := map[string]string{"rank": "%r", "local_rank": "%l", "hostname": "%h", "role_name": "default", "$": "$"}
	prefix := os.Expand(strings.ReplaceAll(args[0], "%", "%%"), func(macro string) string {
		if word, ok := known[macro]; ok {
			return word
		}
		return "${" + macro + "}"
	})
	return []string{"-prepend-pattern", prefix}
}
