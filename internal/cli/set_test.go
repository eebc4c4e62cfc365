package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// command is a launcher's set, small but with every kind of flag.
type command struct {
	*Set
	np       Count
	host     []string
	env      []string
	envAll   []string
	hostfile string
	wait     Duration
	perNode  int
	nodes    string
	mapBy    string
	limit    Duration
	quiet    bool
	tag      bool
	notes    []string
}

func newCommand() *command {
	c := &command{Set: New("gompirun")}
	c.VarP(&c.np, "np", "n", "ranks")
	c.StringArrayVarP(&c.host, "host", "H", nil, "hosts")
	c.StringArrayVarP(&c.env, "variable", "x", nil, "variables")
	c.StringArrayVar(&c.envAll, "x-all", nil, "variables of all")
	c.StringVar(&c.hostfile, "hostfile", "", "file")
	c.Var(&c.wait, "kill-delay", "time")
	c.IntVarP(&c.perNode, "nproc-per-node", "N", 0, "ranks per node")
	c.StringVar(&c.nodes, "nnodes", "", "hosts")
	c.StringVar(&c.mapBy, "map-by", "", "where ranks go")
	c.Var(&c.limit, "timeout", "time")
	c.BoolVarP(&c.quiet, "quiet", "q", false, "say less")
	c.BoolVar(&c.tag, "tag-output", false, "tag")
	c.Habits(LauncherHabits, func(line string) { c.notes = append(c.notes, line) })
	return c
}

// state returns the values of the flags.
func (c *command) state() string {
	var b strings.Builder
	show := func(name string, v any, zero bool) {
		if !zero {
			fmt.Fprintf(&b, "%s=%v ", name, v)
		}
	}
	show("np", c.np, c.np == 0)
	show("host", c.host, len(c.host) == 0)
	show("x", c.env, len(c.env) == 0)
	show("x-all", c.envAll, len(c.envAll) == 0)
	show("hostfile", c.hostfile, c.hostfile == "")
	show("kill-delay", c.wait.String(), c.wait == 0)
	show("N", c.perNode, c.perNode == 0)
	show("q", c.quiet, !c.quiet)
	show("tag", c.tag, !c.tag)
	return strings.TrimSpace(b.String())
}

func TestParseTakesEverySpelling(t *testing.T) {
	tests := []struct{ args, state, rest string }{
		{"-np 4 prog", "np=4", "prog"},
		{"--np 4 prog", "np=4", "prog"},
		{"-np=4 prog", "np=4", "prog"},
		{"--np=4 prog", "np=4", "prog"},
		{"-n 4 prog", "np=4", "prog"},
		{"-n4 prog", "np=4", "prog"},
		{"-n=4 prog", "np=4", "prog"},
		{"--n 4 prog", "np=4", "prog"},
		{"-hostfile f -np 2 prog", "np=2 hostfile=f", "prog"},
		{"-machinefile f prog", "hostfile=f", "prog"},
		{"--machinefile=f prog", "hostfile=f", "prog"},
		{"-c 2 prog", "np=2", "prog"},
		{"-c2 prog", "np=2", "prog"},
		{"-N 2 prog", "N=2", "prog"},
		{"-npernode 2 prog", "N=2", "prog"},
		{"-H a:2,b prog", "host=[a:2,b]", "prog"},
		{"-host a -host b prog", "host=[a b]", "prog"},
		{"-x A -x B=1,2 -x=C=3 prog", "x=[A B=1,2 C=3]", "prog"},
		{"-kill_delay 2 prog", "kill-delay=2s", "prog"},
		{"--tag_output -q prog", "q=true tag=true", "prog"},
		{"-q=false -tag-output=true prog", "tag=true", "prog"},
		{"-hostfile=a=b prog", "hostfile=a=b", "prog"},
		{"-hostfile - prog", "hostfile=-", "prog"},
		{"-np 1 -np 2 prog", "np=2", "prog"},
		{"", "", ""},
	}
	for _, tt := range tests {
		c := newCommand()
		rest, err := c.Parse(strings.Fields(tt.args))
		if err != nil || c.state() != tt.state || strings.Join(rest, " ") != tt.rest {
			t.Errorf("%s: %s, rest %q, %v; want %s, rest %s", tt.args, c.state(), rest, err, tt.state, tt.rest)
		}
	}
}

func TestNothingFromTheProgramOnIsTouched(t *testing.T) {
	tests := []struct{ args, rest string }{
		{"-np 2 prog -np 3 --np_x -hostfile", "prog -np 3 --np_x -hostfile"},
		{"-np 2 prog -- -x", "prog -- -x"},
		{"-np 2 -- -prog -np 3", "-prog -np 3"},
		{"-np 2 -- -- x", "-- x"},
		{"-np 2 - -mca a b", "- -mca a b"},
		{"prog -h --help -mca", "prog -h --help -mca"},
		{"prog : -np 2 prog2", "prog : -np 2 prog2"},
	}
	for _, tt := range tests {
		c := newCommand()
		rest, err := c.Parse(strings.Fields(tt.args))
		if err != nil || strings.Join(rest, " ") != tt.rest || len(c.notes) > 0 {
			t.Errorf("%s: rest %q, %v, notes %q; want rest %s", tt.args, rest, err, c.notes, tt.rest)
		}
	}
}

func TestOperandsMayStandBetweenFlags(t *testing.T) {
	c := newCommand()
	operands, err := c.ParseAll([]string{"bcast", "-np", "4", "scan", "-q", "--", "-x", "-tag-output"})
	if want := []string{"bcast", "scan", "-x"}; err != nil || !slices.Equal(operands, want) || c.np != 4 ||
		!c.quiet || !c.tag {
		t.Errorf("operands %q, error %v, flags %s; want %q, -np 4, -q and -tag-output", operands, err, c.state(), want)
	}
	if _, err := c.ParseAll([]string{"bcast", "-np", "x"}); err == nil ||
		err.Error() != `-np "x": want a whole number, 1 or more` {
		t.Errorf("-np x behind an operand: %v, want an error that quotes it", err)
	}
}

func TestParseErrorsSayWhatWasWanted(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-np", "-np needs a value"},
		{"-hostfile -np 4 prog", `-hostfile needs a value: "-np" after it is a flag itself`},
		{"-np x prog", `-np "x": want a whole number, 1 or more`},
		{"-np 0 prog", `-np "0": want a whole number, 1 or more`},
		{"-np= prog", `-np "": want a whole number, 1 or more`},
		{"-np -1 prog", `-np "-1": want a whole number, 1 or more`},
		{"-N two prog", `-nproc-per-node "two": want a number`},
		{"-q=maybe prog", `-quiet "maybe": want true or false`},
		{"-kill-delay soon prog", `-kill-delay "soon": want seconds, or a duration such as 90s, 2m or 1h30m`},
		{"-hostfil f prog", "unknown flag -hostfil: did you mean -hostfile?"},
		{"--host-file f prog", "unknown flag --host-file: did you mean -hostfile?"},
		{"-machinfile=f prog", "unknown flag -machinfile: did you mean -machinefile?"},
		{"-pn 4 prog", "unknown flag -pn: did you mean -np?"},
		{"-npx 4 prog", "unknown flag -npx: did you mean -np?"},
		{"-tag_ouptut prog", "unknown flag -tag_ouptut: did you mean -tag-output?"},
		{"-lr 0.1 prog", "unknown flag -lr: -h lists the flags"},
		{"---np 4", "unknown flag ---np: did you mean -np?"},
		{"-q4 prog", "unknown flag -q4: -h lists the flags"},
		{"-mca a", "-mca needs 2 values: 1 given"},
		{"-mca", "-mca needs 2 values: 0 given"},
		{"--mca -np 2 prog", `-mca needs 2 values: "-np" after it is a flag itself`},
		{"--mca btl -n4 prog", `-mca needs 2 values: "-n4" after it is a flag itself`},
		{"-genv -np 2 prog", `-genv needs 2 values: "-np" after it is a flag itself`},
		{"-genv A -np 2 prog", `-genv needs 2 values: "-np" after it is a flag itself; if it is meant, type -genv A=-np`},
		{"-hostfile --mca a b prog", `-hostfile needs a value: "--mca" after it is a flag itself`},
		{"-hostfile -n4 prog", `-hostfile needs a value: "-n4" after it is a flag itself`},
		{"-nolocal prog", "-nolocal: gompirun cannot know which host is meant; type -H with the hosts to use"},
		{"-o out prog", "-o out: type -outfile-pattern F and -errfile-pattern F, with %r for the rank"},
		{"--display map,foo prog", "-display map,foo: want map or bindings of it"},
		{"--output=file prog", "-output file: want tag, timestamp, merge or dir=DIR of it; for a file, type -outfile-pattern F"},
		{"-N2 -p gpu --gres gpu:2 -np 4 python a.py 'x",
			"-p gpu --gres gpu:2: hosts, and what they have, are given to a job when it is made. " +
				`Type: salloc -N2 -p gpu --gres gpu:2 gompirun -np 4 python a.py ''\''x'; or, inside a job: gompirun -nnodes 2 -np 4 python a.py ''\''x'`},
		{"-G2 prog", "-G2: hosts, and what they have, are given to a job when it is made. Type: salloc -G2 gompirun prog; or, inside a job: gompirun prog"},
		{"-N 2 --time=1:00:00 prog", "--time=1:00:00: hosts, and what they have, are given to a job when it is made. " +
			"Type: salloc -N2 --time=1:00:00 gompirun prog; or, inside a job: gompirun -nnodes 2 -timeout 3600 prog"},
		{"-N2 -p gpu -t 10 prog", "-p gpu -t 10: hosts, and what they have, are given to a job when it is made. " +
			"Type: salloc -N2 -p gpu -t 10 gompirun prog; or, inside a job: gompirun -nnodes 2 -timeout 600 prog"},
		{"-t10 -N 2-4 -c 2 -C fast prog", "-t10 -C fast: hosts, and what they have, are given to a job when it is made. " +
			"Type: salloc -N2-4 -t10 -C fast gompirun -map-by :PE=2 prog; or, inside a job: gompirun -nnodes 2:4 -map-by :PE=2 -timeout 600 prog"},
		{"-p gpu --nnodes=2 -np=4 prog", "-p gpu: hosts, and what they have, are given to a job when it is made. " +
			"Type: salloc -N2 -p gpu gompirun -np=4 prog; or, inside a job: gompirun --nnodes=2 -np=4 prog"},
		{"-p gpu -N=2 prog", "-p gpu: hosts, and what they have, are given to a job when it is made. " +
			"Type: salloc -N2 -p gpu gompirun prog; or, inside a job: gompirun -nnodes 2 prog"},
		{"-t 10 prog", "-t 10: torchrun's -t takes 0 to 3, or as in 0:3,1:1; for a time limit, as srun's -t is, type -timeout and seconds, or as in 10m"},
	}
	for _, tt := range tests {
		c := newCommand()
		rest, err := c.Parse(strings.Fields(tt.args))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: rest %q, %v\nwant %s", tt.args, rest, err, tt.want)
		}
	}
}

func TestHelpIsAnErrorOfItsOwn(t *testing.T) {
	for _, args := range []string{"-h", "-help", "--help", "-np 2 -h prog"} {
		var asked *HelpError
		if _, err := newCommand().Parse(strings.Fields(args)); !errors.As(err, &asked) || asked.All {
			t.Errorf("%s: %v, want a HelpError", args, err)
		}
	}
	var asked *HelpError
	for args, all := range map[string]bool{"-h all": true, "--help all": true, "--help=all": true, "-h prog": false,
		"-h": false} {
		if _, err := newCommand().Parse(strings.Fields(args)); !errors.As(err, &asked) || asked.All != all {
			t.Errorf("%s: %v, %+v, want a HelpError of all: %v", args, err, asked, all)
		}
	}
	c := newCommand()
	help := c.BoolP("help", "h", false, "help")
	if _, err := c.Parse([]string{"-h"}); err != nil || !*help {
		t.Errorf("a declared -h: %v, %v; want it set", *help, err)
	}
}

func TestHabitsAreTranslatedOrSayOneLine(t *testing.T) {
	tests := []struct{ args, state, note string }{
		{"-mca btl tcp,self -mca pml ob1 --mca x y prog", "",
			"gompirun: -mca is ignored: gompi has no MCA parameters (btl, pml, x)"},
		{"--allow-run-as-root -np 2 prog", "np=2",
			"gompirun: -allow-run-as-root is ignored: any user may run gompirun"},
		{"--allow_run_as_root --allow-run-as-root prog", "",
			"gompirun: -allow-run-as-root is ignored: any user may run gompirun"},
		{"--prefix=/opt/mpi prog", "", "gompirun: -prefix is ignored: nothing has to be installed at the same place on every host (/opt/mpi)"},
		{"-launcher ssh -np 2 prog", "np=2", "gompirun: -launcher is ignored: gompirun chooses itself how to reach a host (ssh)"},
		{"-genv A 1 -genvlist B,C -envlist D prog", "x=[D] x-all=[A=1 B C]", ""},
		{"-genv=A 1 prog", "x-all=[A=1]", ""},
		{"-f hosts prog", "hostfile=hosts", ""},
		{"-hosts a,b prog", "host=[a,b]", ""},
		{"-pernode prog", "N=1", ""},
		{"-l prog", "tag=true", ""},
		{"--output tag prog", "tag=true", ""},
		{"--output raw prog", "", ""},
		{"-genv A=1 -np 2 prog", "np=2 x-all=[A=1]", ""},
		{"-genv=A=1 prog", "x-all=[A=1]", ""},
		{"-env A -1 prog", "x=[A=-1]", ""},
		{"--export=ALL,A=1 prog", "x=[A=1]", ""},
		{"--export ALL prog", "", ""},
		{"--ntasks 3 --ntasks-per-node=2 -K prog", "np=3 N=2", ""},
		{"--rdzv_backend=c10d -rdzv-backend static prog", "", ""},
		{"--rdzv-backend=etcd prog", "", "gompirun: -rdzv-backend is ignored: the nodes of a job meet at gompirun (etcd)"},
		{"-t 3 prog", "tag=true", ""},
		{"-t 0:3,1:1 prog", "tag=true", ""},
		{"-t 0 prog", "", ""},
		{"--tee=0 prog", "", "gompirun: -tee is ignored: output is always shown (0)"},
		{"-genvall prog", "", "gompirun: -genvall is ignored: ranks always get the environment"},
	}
	for _, tt := range tests {
		c := newCommand()
		rest, err := c.Parse(strings.Fields(tt.args))
		if err != nil || c.state() != tt.state || strings.Join(rest, " ") != "prog" {
			t.Errorf("%s: %s, rest %q, %v; want %s, rest prog", tt.args, c.state(), rest, err, tt.state)
		}
		if got := strings.Join(c.notes, "\n"); got != tt.note {
			t.Errorf("%s: notes\n%s\nwant\n%s", tt.args, got, tt.note)
		}
	}
}

// TestEveryHabitHasOneAnswer: it is translated, or ignored with a line, or refused with one.
// Tests of gompirun's flags check that the translations exist.
func TestEveryHabitHasOneAnswer(t *testing.T) {
	seen := make(map[string]bool)
	for _, h := range LauncherHabits() {
		answers := 0
		for _, given := range []bool{h.Why != "", h.Instead != "", h.Grant, h.Parameter} {
			if given {
				answers++
			}
		}
		if answers > 1 || answers == 0 && h.To == nil {
			t.Errorf("-%s: %+v: want one answer", h.Names[0], h)
		}
		for _, name := range h.Names {
			if seen[name] {
				t.Errorf("-%s is in the table twice", name)
			}
			seen[name] = true
		}
	}
}

// Building the table takes longer than all else about an ordinary command line.
func TestHabitsAreNotLookedAtInVain(t *testing.T) {
	for args, want := range map[string]bool{"-np 2 -q -N2 --hostfile=f prog -l": false, "-np 2 -l prog": true,
		"-nq 2 prog": true} {
		looked := false
		c := newCommand()
		c.Habits(func() []Habit {
			looked = true
			return LauncherHabits()
		}, func(string) {})
		if c.Parse(strings.Fields(args)); looked != want {
			t.Errorf("%s: looked for habits: %v, want %v", args, looked, want)
		}
	}
}

func TestDistanceCountsSlips(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"np", "np", 0}, {"np", "pn", 1}, {"np", "n", 1}, {"hostfil", "hostfile", 1},
		{"abc", "", 3}, {"kitten", "sitting", 3}, {strings.Repeat("a", 100), "a", 100},
	}
	for _, tt := range tests {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func FuzzParseNeverTouchesTheProgram(f *testing.F) {
	for _, s := range []string{"-np\x004", "--mca\x00a\x00b", "-x\x00=\x00-h", "-n4\x00-N=2", "--\x00prog",
		"-output\x00tag", "---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		tail := []string{"prog", "-np", "0", "--unknown"}
		args := append(strings.Split(line, "\x00"), tail...)
		rest, err := newCommand().Parse(args)
		if err != nil {
			return
		}
		if len(rest) > len(args) || !slices.Equal(rest, args[len(args)-len(rest):]) {
			t.Errorf("%q left %q, want the end of the arguments", args, rest)
		}
	})
}

func TestTimesOfSlurmAreSeconds(t *testing.T) {
	for given, want := range map[string]string{
		"10": "600", "1:30": "90", "1:00:00": "3600", "2-12": "216000", "1-0:30": "88200", "1-00:00:05": "86405",
		"0": "", "UNLIMITED": "", "-1": "", "": "", "1:2:3:4": "", "1-": "", "x": "", "99999999999999999999": "",
		"1:x": "", "1-1-1": "",
	} {
		var flags []string
		if want != "" {
			flags = []string{"-timeout", want}
		}
		if got := timeLimit([]string{given}); !slices.Equal(got, flags) {
			t.Errorf("%q is %q, want %q", given, got, flags)
		}
	}
}
