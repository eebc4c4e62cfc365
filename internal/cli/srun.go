package cli

import (
	"strconv"
	"strings"
)

// srunLetters are letters with different meanings to gompirun and srun. On a command line with a
// flag of srun alone, they have srun's meaning.
var srunLetters = map[string]string{"N": "nodes", "c": "cpus-per-task", "t": "time"}

// srunHabits returns the flags of srun. Letters that mpirun has, too, keep mpirun's meaning.
func srunHabits() []Habit {
	const files = "type -outfile-pattern F and -errfile-pattern F, with %r for the rank"
	return []Habit{
		{Names: []string{"nodes"}, Args: 1, To: nodeRange},
		{Names: []string{"ntasks-per-socket"}, Args: 1, To: mapped("ppr:", ":package")},
		{Names: []string{"cpus-per-task"}, Args: 1, To: mapped(":PE=", "")},
		{Names: []string{"label"}, To: always("-tag-output")},
		{Names: []string{"overcommit", "O"}, To: always("-oversubscribe")},
		{Names: []string{"distribution"}, Args: 1, To: distribution,
			Instead: "type -map-by slot, -map-by node or -rankfile F"},
		{Names: []string{"cpu-bind"}, Args: 1, To: cpuBinding,
			Instead: "type -bind-to none, hwthread, core, numa or package, or -rankfile F"},
		{Names: []string{"gpu-bind", "tres-bind", "tres-per-task"}, Args: 1,
			Instead: "type -gpus-per-rank N, or -bind-to gpu"},
		{Names: []string{"export"}, Args: 1, To: exported, Instead: "type env -i NAME=value before the program"},
		{Names: []string{"kill-on-bad-exit", "K", "preserve-env", "E", "quit-on-interrupt", "disable-status", "X",
			"oom-kill-step"}, To: always()},
		{Names: []string{"Q"}, To: always("-q")},
		{Names: []string{"no-kill", "k"}, Why: "-min-np M continues without a host that is lost"},
		{Names: []string{"mem-bind"}, Args: 1,
			Why: "memory comes from where a rank first touches it; -bind-to numa keeps ranks near it"},
		{Names: []string{"hint"}, Args: 1, Why: "-use-hwthread-cpus counts hardware threads"},
		{Names: []string{"wait", "W"}, Args: 1, Why: "a rank that fails ends the job; -kill-delay says how soon"},
		{Names: []string{"mpi"}, Args: 1, Why: "ranks find PMI-1 and what is gompi's own"},
		{Names: []string{"unbuffered", "u"}, Why: whole},
		{Names: []string{"ignore-signals"}, Args: 1, Why: forwards},
		{Names: []string{"threads", "T"}, Args: 1, Why: reach},
		{Names: []string{"exact", "overlap", "propagate", "resv-ports", "send-libs"},
			Why: "gompirun asks Slurm for its step itself"},
		{Names: []string{"input", "i"}, Args: 1, Instead: "type -stdin RANK <F"},
		{Names: []string{"o"}, Args: 1, Instead: files},
		{Names: []string{"error", "e"}, Args: 1, Instead: files},
		{Names: []string{"async"}, Instead: "type & behind the line"},
		{Names: []string{"wait-for-children"},
			Instead: "type a program that waits for its children; -no-kill-children lets them live"},
		{Names: []string{"multi-prog"}, Instead: "type -app F, with lines as in: -np 1 ./server"},
		{Names: []string{"pty"}, Instead: "ranks have no terminal; that is srun --pty"},
		{Names: []string{"bcast", "bcast-exclude", "compress"}, Args: 1,
			Instead: "type -preload-binary, or -preload-files LIST"},
		{Names: []string{"slurmd-debug"}, Args: 1, Why: verbose},
		{Names: []string{"usage"}, Instead: "type -h"},
		{Names: []string{"jobid"}, Args: 1, Instead: "gompirun uses the job in which it is; type it there"},
		{Names: []string{"exclude"}, Args: 1, Instead: "type -H with the hosts to use"},
		{Names: []string{"relative"}, Args: 1, Instead: "type -H with the hosts to use"},
		{Names: []string{"ntasks-per-gpu"}, Args: 1,
			Instead: "type -np N -gpus-per-rank 1: ranks share GPUs if these are fewer"},
		{Names: []string{"ntasks-per-core"}, Args: 1, Instead: "type -use-hwthread-cpus -bind-to hwthread"},
		{Names: []string{"prolog", "epilog", "task-prolog", "task-epilog"}, Args: 1,
			Instead: "type a script that does so and runs the program"},
		{Names: []string{"time"}, Args: 1, To: timeLimit, Grant: true},
		{Names: []string{"het-group"}, Args: 1, Instead: `type ":" between programs, and -H with the hosts of each`},
		{Names: strings.Fields(`account A partition p qos gres gpus G gpus-per-node gpus-per-socket cpus-per-gpu
		mem mem-per-cpu mem-per-gpu time-min constraint C reservation licenses L mincpus tmp begin b dependency
		job-name J comment mail-type mail-user priority switches signal sockets-per-node cores-per-socket
		threads-per-core extra-node-info B core-spec S thread-spec deadline delay-boot bb bbf cluster-constraint
		clusters M wckey power acctg-freq mcs-label gres-flags network container container-id container-type cpu-freq gpu-freq segment extra prefer`), Args: 1, Grant: true},
		{Names: strings.Fields("exclusive contiguous hold immediate I nice reboot spread-job spread-segments use-min-nodes no-allocate Z"), Grant: true},
	}
}

// nodeRange translates srun's 2-4 to torchrun's 2:4.
func nodeRange(args []string) []string {
	return []string{"-nnodes", strings.Replace(args[0], "-", ":", 1)}
}

// timeLimit translates Slurm's minutes, m:s, h:m:s, d-h, d-h:m or d-h:m:s to seconds. Other
// words, and 0 or UNLIMITED, mean no limit.
func timeLimit(args []string) []string {
	units := []int{60, 1} // of the parts, in seconds
	clock := args[0]
	total := 0
	if days, rest, ok := strings.Cut(clock, "-"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return nil
		}
		total, clock, units = int(n)*86400, rest, []int{3600, 60, 1}
	} else if strings.Count(clock, ":") == 2 {
		units = []int{3600, 60, 1}
	}
	parts := strings.Split(clock, ":")
	if len(parts) > len(units) {
		return nil
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil
		}
		total += int(n) * units[i]
	}
	if total == 0 {
		return nil
	}
	return []string{"-timeout", strconv.Itoa(total)}
}

// distribution translates --distribution for the hosts: block:cyclic is block.
func distribution(args []string) []string {
	nodes, _, _ := strings.Cut(args[0], ":")
	switch nodes {
	case "block", "*":
		return []string{"-map-by", "slot"}
	case "cyclic":
		return []string{"-map-by", "node"}
	}
	return nil
}

// cpuBinding translates --cpu-bind=verbose,cores.
func cpuBinding(args []string) []string {
	to := map[string]string{"none": "none", "cores": "core", "threads": "hwthread", "sockets": "package",
		"ldoms": "numa"}
	flags := []string{}
	for word := range strings.SplitSeq(args[0], ",") {
		switch what := to[word]; {
		case word == "v", word == "verbose":
			flags = append(flags, "-report-bindings")
		case word == "q", word == "quiet":
		case what == "":
			return nil
		default:
			flags = append(flags, "-bind-to", what)
		}
	}
	return flags
}

// exported translates --export=ALL,A=b.
func exported(args []string) []string {
	if args[0] == "NONE" || args[0] == "NIL" {
		return nil
	}
	return append([]string{}, listFor("-x")([]string{strings.TrimPrefix(strings.TrimPrefix(args[0], "ALL"), ",")})...)
}
