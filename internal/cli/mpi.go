package cli

import (
	"slices"
	"strings"
)

// Reasons common to several habits.
const (
	mca      = "gompi has no MCA parameters"
	reach    = "gompirun chooses itself how to reach a host"
	daemons  = "agents start and end with the job"
	prefix   = "nothing has to be installed at the same place on every host"
	noPrefix = "there is no prefix"
	verbose  = "-v says what gompirun does"
	others   = "gompirun cannot know which host is meant; type -H with the hosts to use"
	debugger = "start the job, then type gompirun attach RANK"
	wrapper  = "type the tool before the program, as in gompirun TOOL ./prog"
	traffic  = "with -x GOMPI_LOG=info ranks say which transports they have used"
	whole    = "lines of ranks are passed on whole"
	forwards = "ranks get the signals that gompirun gets"

	noVariable = "it names no variable"
)

// withFT returns the flags for Open MPI's kinds of fault tolerance.
func withFT(args []string) []string {
	switch strings.ToLower(args[0]) {
	case "ulfm", "mpi", "yes", "true":
		return []string{"-recover"}
	}
	return []string{}
}

// preloadOrInput translates -s: Open MPI's sends the program, Intel MPI's names the ranks that
// read standard input.
func preloadOrInput(args []string) []string {
	if len(args) == 0 {
		return []string{"-preload-binary"}
	}
	return []string{"-stdin", args[0]}
}

// isRanks reports whether a word is an argument of Intel MPI's -s: all, none, or numbers of
// ranks.
func isRanks(word string) bool {
	return word == "all" || word == "none" ||
		word != "" && word[0] != '-' && strings.Trim(word, "0123456789,-") == ""
}

// openMPIHabits returns the flags of Open MPI.
func openMPIHabits() []Habit {
	return []Habit{
		{Names: []string{"mca", "gmca", "omca", "gomca", "prtemca", "pmixmca", "gpmixmca"}, Args: 2, Parameter: true},
		{Names: []string{"tune", "am", "amca"}, Args: 1, Why: "gompi reads no files of parameters"},
		{Names: []string{"allow-run-as-root"}, Why: "any user may run gompirun"},
		{Names: []string{"prefix"}, Args: 1, Why: prefix},
		{Names: []string{"noprefix"}, Why: noPrefix},
		{Names: []string{"personality"}, Args: 1, Why: "ranks of every kind find their variables"},
		{Names: []string{"with-ft"}, Args: 1, To: withFT},
		{Names: []string{"enable-recovery"}, To: always("-recover")},
		{Names: []string{"continuous"}, Why: "a rank that fails ends the job, or with -recover is left out; -max-restarts N starts all again"},
		{Names: []string{"disable-recovery", "show-progress", "report-state-on-timeout"}, To: always()},
		{Names: []string{"hetero-nodes"}, Why: "every host is looked at by itself"},
		{Names: []string{"do-not-resolve", "use-regexp"}, Why: reach},
		{Names: []string{"dvm"}, May: isDVM, Why: daemons},
		{Names: []string{"novm", "enable-instant-on-support", "fwd-mpirun-port"}, Why: daemons},
		{Names: []string{"hnp", "ompi-server", "report-uri", "report-events"}, Args: 1,
			Why: "gompirun serves no other tools"},
		{Names: []string{"output-proctable", "report-child-jobs-separately"}, Why: "gompirun serves no other tools"},
		{Names: []string{"max-vm-size"}, Args: 1, Why: daemons},
		{Names: []string{"cf", "cartofile"}, Args: 1, Why: "each host is asked what it is made of"},
		{Names: []string{"debug-daemons", "debug-daemons-file", "leave-session-attached", "debug-devel", "d"},
			Why: verbose},
		{Names: []string{"stream-buffering"}, Args: 1, Why: whole},
		{Names: []string{"index-argv-by-rank"}, Why: "ranks find their number in GOMPI_RANK"},
		{Names: []string{"xml"}, Why: "-tag-output says whose a line is"},
		{Names: []string{"xml-file"}, Args: 1, Why: "-tag-output says whose a line is"},
		{Names: []string{"debug", "tv"}, Instead: debugger},
		{Names: []string{"debugger"}, Args: 1, Instead: debugger},
		{Names: []string{"xterm"}, Args: 1, Instead: "gompirun opens no windows; type -output-filename DIR, or gompirun attach RANK"},
		{Names: []string{"nolocal"}, Instead: others},
		{Names: []string{"set-cwd-to-session-dir"}, Instead: "ranks have no folder of their own; type -wdir DIR"},
		{Names: []string{"default-hostfile"}, Args: 1,
			Instead: "type -hostfile F, or set GOMPI_HOSTFILE=F for lines that name no hosts"},
		{Names: []string{"nooversubscribe"}, To: always("-oversubscribe=false")},
		{Names: []string{"pernode"}, To: always("-nproc-per-node", "1")},
		{Names: []string{"npersocket"}, Args: 1, To: mapped("ppr:", ":package")},
		{Names: []string{"ppr"}, Args: 1, To: mapped("ppr:", "")},
		{Names: []string{"cpus-per-proc", "cpus-per-rank"}, Args: 1, To: mapped(":PE=", "")},
		{Names: []string{"bynode"}, To: always("-map-by", "node")},
		{Names: []string{"byslot"}, To: always("-map-by", "slot")},
		{Names: []string{"bycore"}, To: always("-map-by", "core")},
		{Names: []string{"bind-to-core"}, To: always("-bind-to", "core")},
		{Names: []string{"bind-to-socket"}, To: always("-bind-to", "package")},
		{Names: []string{"s"}, May: isRanks, To: preloadOrInput},
		{Names: []string{"display-allocation", "display-devel-allocation", "display-devel-map", "display-diffable-map",
			"display-topo"}, To: always("-display-map")},
		{Names: []string{"output"}, Args: 1, To: outputDirectives,
			Instead: "want tag, timestamp, merge or dir=DIR of it; for a file, type -outfile-pattern F"},
		{Names: []string{"display"}, Args: 1, To: displayDirectives, Instead: "want map or bindings of it"},
		{Names: []string{"V"}, To: always("-version")},
	}
}

// hydraHabits returns the flags of hydra, which MPICH and Intel MPI use.
func hydraHabits() []Habit {
	return []Habit{
		{Names: []string{"launcher", "bootstrap", "rmk"}, Args: 1, Why: reach},
		{Names: []string{"enable-x", "disable-x"}, Why: "ssh's own configuration says whether X is forwarded"},
		{Names: []string{"topolib", "demux", "nameserver", "localhost", "usize"}, Args: 1,
			Why: "gompirun needs no such thing"},
		{Names: []string{"pmi-port", "profile"}, Why: "gompirun needs no such thing"},
		{Names: []string{"membind"}, Args: 1,
			Why: "memory comes from where a rank first touches it; -bind-to numa keeps ranks near it"},
		{Names: []string{"order-nodes"}, Args: 1, Why: "hosts are taken in the order in which they are listed"},
		{Names: []string{"rankmap"}, Args: 1, Why: "-rankfile F says where each rank runs"},
		{Names: []string{"hybrid-hosts"}, Why: prefix},
		{Names: []string{"disable-auto-cleanup"},
			Why: "a rank that fails ends the job; with -recover the others may continue without it"},
		{Names: []string{"disable-hostname-propagation"}, Why: "ranks have the hosts' names as they are listed"},
		{Names: []string{"skip-launch-node"}, Instead: others},
		{Names: []string{"genvall", "envall"}, Why: "ranks always get the environment"},
		{Names: []string{"genvnone", "envnone"}, Why: "ranks always get the environment; env -i empties it"},
		{Names: []string{"genv"}, Args: 2, Pair: true, To: pairFor("-x-all")},
		{Names: []string{"env"}, Args: 2, Pair: true, To: pairFor("-x")},
		{Names: []string{"genvlist"}, Args: 1, To: listFor("-x-all"), Why: noVariable},
		{Names: []string{"envlist"}, Args: 1, To: listFor("-x"), Why: noVariable},
		{Names: []string{"print-rank-map"}, To: always("-display-map")},
		{Names: []string{"rr"}, To: always("-ppn", "1")},
		{Names: []string{"aps", "mps"}, Instead: wrapper},
		{Names: []string{"gtool", "gtoolfile"}, Args: 1, Instead: wrapper},
		{Names: []string{"gdb"}, Instead: debugger},
		{Names: []string{"gdb-args"}, Args: 1, Instead: debugger},
		{Names: []string{"prot"}, Why: traffic},
		{Names: []string{"silent-abort"}, Why: "-q prints nothing but the reason of a failure"},
		{Names: []string{"prepend-timestamp"}, To: always("-timestamp-output")},
		{Names: []string{"prepend-rank", "l"}, To: always("-tag-output")},
		{Names: []string{"print-all-exitcodes"}, To: always("-v")},
		{Names: []string{"info"}, To: always("-version")},
	}
}

// pairFor translates -env A 1, which may be one word.
func pairFor(flag string) func([]string) []string {
	return func(args []string) []string { return []string{flag, strings.Join(args, "=")} }
}

// listFor translates -envlist A,B.
func listFor(flag string) func([]string) []string {
	return func(args []string) (flags []string) {
		for name := range strings.SplitSeq(args[0], ",") {
			if name != "" {
				flags = append(flags, flag, name)
			}
		}
		return flags
	}
}

// isDVM reports whether a word is the address of a DVM of Open MPI 5.
func isDVM(word string) bool {
	how, _, _ := strings.Cut(word, ":")
	return slices.Contains([]string{"search", "system", "system-first", "pid", "file", "uri", "ns"}, how)
}

// outputDirectives translates --output tag,timestamp,merge,dir=D.
func outputDirectives(args []string) []string {
	flags := []string{}
	for d := range strings.SplitSeq(args[0], ",") {
		key, value, _ := strings.Cut(d, "=")
		switch strings.ToLower(key) {
		case "tag", "tag-detailed", "tag-fullname":
			flags = append(flags, "-tag-output")
		case "timestamp":
			flags = append(flags, "-timestamp-output")
		case "merge", "merge-stderr-to-stdout":
			flags = append(flags, "-merge-stderr-to-stdout")
		case "dir", "directory":
			flags = append(flags, "-output-filename", value)
		case "raw":
		default:
			return nil
		}
	}
	return flags
}

// displayDirectives translates --display map,bindings.
func displayDirectives(args []string) []string {
	flags := []string{}
	for d := range strings.SplitSeq(strings.ToLower(args[0]), ",") {
		switch d {
		case "map", "map-devel", "alloc", "allocation", "topo", "cpus":
			flags = append(flags, "-display-map")
		case "bind", "bindings":
			flags = append(flags, "-report-bindings")
		default:
			return nil
		}
	}
	return flags
}
