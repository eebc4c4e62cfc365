package cli

import (
	"fmt"
	"slices"
	"strings"
)

// A Habit is a flag of another launcher that users type and this one does not
// have. It never makes a command line fail.
type Habit struct {
	Names []string // without dashes
	Args  int      // how many arguments it takes

	// To translates it to flags of this launcher; an empty list says that what
	// it asks for is so in any case. When To is nil or returns nil the habit is
	// ignored, with one line that gives Why.
	To  func(args []string) []string
	Why string
}

// Habits declares flags that are accepted for habit. note is called with one
// complete line for each Habit that was used and is ignored, however often.
func (s *Set) Habits(table []Habit, note func(line string)) {
	s.habits, s.note = make(map[string]Habit), note
	for _, h := range table {
		for _, name := range h.Names {
			s.habits[name] = h
		}
	}
}

// usedHabits collects what there is to say of the habits on one command line.
type usedHabits struct {
	set   *Set
	lines []*habitLine
}

type habitLine struct {
	why  string
	args []string // the first argument of each use
	name string   // as in the table
}

// take returns args without those of h, or with what h is translated to.
func (u *usedHabits) take(h Habit, value string, inArg bool, args []string) ([]string, error) {
	var own []string
	if inArg {
		own = append(own, value)
	}
	missing := max(0, h.Args-len(own))
	if missing > len(args) {
		return nil, fmt.Errorf("-%s needs %d values, as with the launcher it comes from: %d follow", h.Names[0], h.Args, len(own)+len(args))
	}
	own, args = append(own, args[:missing]...), args[missing:]
	if h.To != nil {
		if to := h.To(own); to != nil {
			return append(to, args...), nil
		}
	}
	u.ignore(h, own)
	return args, nil
}

func (u *usedHabits) ignore(h Habit, own []string) {
	i := slices.IndexFunc(u.lines, func(l *habitLine) bool { return l.name == h.Names[0] })
	if i < 0 {
		i = len(u.lines)
		u.lines = append(u.lines, &habitLine{name: h.Names[0], why: h.Why})
	}
	if len(own) > 0 {
		u.lines[i].args = append(u.lines[i].args, own[0])
	}
}

func (u *usedHabits) report() {
	for _, l := range u.lines {
		line := fmt.Sprintf("%s: -%s is ignored: %s", u.set.Name(), l.name, l.why)
		if len(l.args) > 0 {
			line += " (" + strings.Join(l.args, ", ") + ")"
		}
		u.set.note(line)
	}
}

// LauncherHabits returns what users of Open MPI's mpirun, hydra, Intel's
// mpiexec and torchrun type that gompirun has no flag for. It translates to -x, -host,
// -hostfile, -N, -wdir, -map-by, -bind-to, -tag-output, -timestamp-output,
// -output-filename, -rsh, -display-map, -report-bindings, -q, -v and -version, which
// the Set has to have.
func LauncherHabits() []Habit {
	const (
		mca   = "gompi has no MCA parameters"
		reach = "gompirun chooses itself how to reach a host"
		debug = "-v says what gompirun does"
	)
	return append(torchHabits(), []Habit{
		{Names: []string{"mca", "gmca", "omca", "prtemca", "pmixmca"}, Args: 2, Why: mca},
		{Names: []string{"tune", "am"}, Args: 1, Why: mca},
		{Names: []string{"allow-run-as-root"}, Why: "any user may run gompirun"},
		{Names: []string{"prefix"}, Args: 1, Why: "nothing has to be installed at the same place on every host"},
		{Names: []string{"noprefix"}, Why: "there is no prefix"},
		{Names: []string{"launcher", "bootstrap", "rmk"}, Args: 1, Why: reach},
		{Names: []string{"launcher-exec", "bootstrap-exec"}, Args: 1, To: renamed("-rsh")},
		{Names: []string{"iface"}, Args: 1, Why: "ranks try out which addresses reach each other"},
		{Names: []string{"rankmap"}, Args: 1, Why: "-rank-by numbers ranks"},
		{Names: []string{"stream-buffering"}, Args: 1, Why: "lines of ranks are passed on whole"},
		{Names: []string{"keep-fqdn-hostnames"}, Why: "names of hosts are never shortened"},
		{Names: []string{"hetero-nodes"}, Why: "every host is looked at by itself"},
		{Names: []string{"disable-auto-cleanup"}, Why: "a rank that fails always ends the job"},
		{Names: []string{"debug-daemons", "leave-session-attached"}, Why: debug},
		{Names: []string{"genvall", "envall"}, Why: "ranks always get the environment"},
		{Names: []string{"genvnone", "envnone"}, Why: "ranks always get the environment; env -i empties it"},
		{Names: []string{"genv", "env"}, Args: 2, To: func(a []string) []string { return []string{"-x", a[0] + "=" + a[1]} }},
		{Names: []string{"genvlist", "envlist"}, Args: 1, To: exportList, Why: "it names no variable"},
		{Names: []string{"hosts", "hostlist", "machines"}, Args: 1, To: renamed("-host")},
		{Names: []string{"f"}, Args: 1, To: renamed("-hostfile")},
		{Names: []string{"wd", "workdir"}, Args: 1, To: renamed("-wdir")},
		{Names: []string{"pernode"}, To: always("-N", "1")},
		{Names: []string{"npersocket"}, Args: 1, To: mapped("ppr:", ":package")},
		{Names: []string{"cpus-per-proc", "cpus-per-rank"}, Args: 1, To: mapped(":PE=", "")},
		{Names: []string{"bynode"}, To: always("-map-by", "node")},
		{Names: []string{"byslot"}, To: always("-map-by", "slot")},
		{Names: []string{"bind-to-core"}, To: always("-bind-to", "core")},
		{Names: []string{"bind-to-socket"}, To: always("-bind-to", "package")},
		{Names: []string{"bysocket"}, To: always("-map-by", "package")},
		{Names: []string{"bind-to-none"}, To: always("-bind-to", "none")},
		{Names: []string{"prepend-rank", "l"}, To: always("-tag-output")},
		{Names: []string{"display-allocation", "display-devel-map"}, To: always("-display-map")},
		{Names: []string{"quiet"}, To: always("-q")},
		{Names: []string{"verbose"}, To: always("-v")},
		{Names: []string{"V"}, To: always("-version")},
		{Names: []string{"output"}, Args: 1, To: outputDirectives, Why: "want tag, timestamp or dir=DIR of it"},
		{Names: []string{"display"}, Args: 1, To: displayDirectives, Why: "want map or bindings of it"},
	}...)
}

func always(flags ...string) func([]string) []string {
	return func([]string) []string { return append([]string{}, flags...) }
}

func renamed(flag string) func([]string) []string {
	return func(args []string) []string { return []string{flag, args[0]} }
}

// mapped translates a flag with a number to -map-by.
func mapped(before, after string) func([]string) []string {
	return func(args []string) []string { return []string{"-map-by", before + args[0] + after} }
}

// exportList translates -genvlist A,B.
func exportList(args []string) []string {
	var flags []string
	for name := range strings.SplitSeq(args[0], ",") {
		if name != "" {
			flags = append(flags, "-x", name)
		}
	}
	return flags
}

// outputDirectives translates --output tag,timestamp,dir=D.
func outputDirectives(args []string) []string {
	var flags []string
	for d := range strings.SplitSeq(args[0], ",") {
		key, value, _ := strings.Cut(d, "=")
		switch key {
		case "tag", "tag-detailed", "tag-fullname":
			flags = append(flags, "-tag-output")
		case "timestamp":
			flags = append(flags, "-timestamp-output")
		case "dir", "directory":
			flags = append(flags, "-output-filename", value)
		}
	}
	return flags
}

// displayDirectives translates --display map,bindings.
func displayDirectives(args []string) []string {
	var flags []string
	for d := range strings.SplitSeq(args[0], ",") {
		switch d {
		case "map", "map-devel", "alloc", "allocation":
			flags = append(flags, "-display-map")
		case "bind", "bindings":
			flags = append(flags, "-report-bindings")
		}
	}
	return flags
}
