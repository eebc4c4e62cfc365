package cmdline

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/cli"
	"gompi/mpirun/internal/plan"
)

func testGetenv(name string) (string, bool) {
	if name == "HERE" {
		return "value", true
	}
	return "", false
}

// parse reads a line, and returns also the notes for the user.
func parse(line string, getenv func(string) (string, bool)) (*Spec, string, error) {
	var notes strings.Builder
	spec, err := Parse(strings.Fields(line), getenv, func(line string) { notes.WriteString(line + "\n") })
	return spec, notes.String(), err
}

func TestFlagsOfTheJob(t *testing.T) {
	spec, notes, err := parse("-np 4 -hostfile h -N 2 -map-by node -bind-to core -nooversubscribe -tag-output --timestamp_output "+
		"-output-filename d -stdin all -timeout 1m -kill-delay 0.5 -display-map -report-bindings -q -v prog -np 9", testGetenv)
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if spec.Hostfile != "h" || spec.Policy != (plan.Policy{Order: plan.ByNode, PerNode: 2, NoOversubscribe: true,
		BindTo: plan.BindCore}) {
		t.Errorf("hostfile %q, policy %+v", spec.Hostfile, spec.Policy)
	}
	if !spec.Output.Tag || !spec.Output.Stamp || spec.Output.Dir != "d" || spec.Stdin != (Stdin{All: true}) ||
		!spec.Report.Map || !spec.Report.Bindings || !spec.Quiet || !spec.Verbose {
		t.Errorf("options %+v lack what was given", spec)
	}
	if spec.Timeout != time.Minute || spec.KillDelay != 500*time.Millisecond {
		t.Errorf("timeout %v, kill delay %v", spec.Timeout, spec.KillDelay)
	}
	if len(spec.Programs) != 1 || spec.Programs[0].NP != 4 ||
		!slices.Equal(spec.Programs[0].Argv, []string{"prog", "-np", "9"}) {
		t.Errorf("programs %+v", spec.Programs)
	}
}

func TestDefaults(t *testing.T) {
	spec, _, err := parse("prog", testGetenv)
	if err != nil || spec.KillDelay != 10*time.Second || spec.Timeout != 0 || spec.Stdin != (Stdin{}) ||
		spec.Policy != (plan.Policy{}) || spec.Programs[0].NP != 0 {
		t.Errorf("options %+v, %v", spec, err)
	}
}

func TestTheTimeLimitMayBeInTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		value, line string
		want        time.Duration
	}{
		{"60", "prog", time.Minute}, {"90s", "prog", 90 * time.Second}, {"-1", "prog", 0}, {"", "prog", 0},
		{"60", "-timeout 9 prog", 9 * time.Second}, {"60", "-timeout 0 prog", 0},
		{"no time", "-timeout 9 prog", 9 * time.Second},
	} {
		spec, _, err := parse(test.line, only("MPIEXEC_TIMEOUT", test.value))
		if err != nil || spec.Timeout != test.want {
			t.Errorf("MPIEXEC_TIMEOUT=%s gompirun %s: %v, %v; want %v", test.value, test.line, spec, err, test.want)
		}
	}
	_, _, err := parse("prog", only("MPIEXEC_TIMEOUT", "soon"))
	if want := `MPIEXEC_TIMEOUT "soon": want seconds, or a duration such as 90s, 2m or 1h30m`; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestEveryFlagHasItsOtherNames(t *testing.T) {
	for _, line := range []string{"-np 3 p", "-n 3 p", "-n3 p", "--np=3 p", "-c 3 p"} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Programs[0].NP != 3 {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-N 3 p", "-npernode 3 p", "-nproc-per-node 3 p", "-map-by ppr:3:node p"} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Policy.PerNode != 3 || spec.Policy.Wrap {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-ppn 3 p", "-perhost 3 p"} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Policy.PerNode != 3 || !spec.Policy.Wrap {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-hostfile f p", "-machinefile f p", "-f f p"} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Hostfile != "f" {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-H a:2,b p", "-host a:2,b p", "-hosts a:2,b p"} {
		if spec, _, err := parse(line, testGetenv); err != nil || spec.Programs[0].Hosts != "a:2,b" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestProgramsHaveTheirOwnFlags(t *testing.T) {
	spec, notes, err := parse("-np 1 -H a -x A=1 -x HERE -x GONE -x OMP_* p1 : -n 2 -wdir /d -x A=2 p2 x:y : p3", testGetenv)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "GONE") || strings.Contains(notes, "OMP_") {
		t.Errorf("notes %q, want one on GONE", notes)
	}
	want := []Program{
		{Argv: []string{"p1"}, NP: 1, Hosts: "a", Env: []string{"A=1", "HERE=value"}},
		{Argv: []string{"p2", "x:y"}, NP: 2, Wdir: "/d", Env: []string{"A=2"}},
		{Argv: []string{"p3"}},
	}
	for i, w := range want {
		g := spec.Programs[i]
		if !slices.Equal(g.Argv, w.Argv) || g.NP != w.NP || g.Hosts != w.Hosts || g.Wdir != w.Wdir ||
			!slices.Equal(g.Env, w.Env) {
			t.Errorf("program %d is %+v, want %+v", i, g, w)
		}
	}
}

func TestWhatSrunMeansOtherwiseIsReported(t *testing.T) {
	inSlurm := func(name string) (string, bool) {
		if name == "SLURM_JOB_ID" {
			return "1", true
		}
		return "", false
	}
	for line, want := range map[string]string{
		"-N2 p":            "gompirun: -N 2 is ranks on each host; for srun's -N, a number of hosts, type -nnodes 2\n",
		"-N 2 -nnodes 2 p": "", "-npernode 2 p": "", "-pernode p": "", "--ntasks-per-node 2 p": "", "-ppn 2 p": "",
	} {
		if _, notes, err := parse(line, inSlurm); err != nil || notes != want {
			t.Errorf("%q in a job of Slurm: %q, %v; want %q", line, notes, err, want)
		}
	}
	if _, notes, err := parse("-N2 p", testGetenv); err != nil || notes != "" {
		t.Errorf("-N2 elsewhere: %q, %v", notes, err)
	}
	for _, line := range []string{"-n 4 -c 2 p", "-c2 -np 4 p"} {
		if _, _, err := parse(line, testGetenv); err == nil || !strings.Contains(err.Error(), "type -map-by :PE=N") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// usageFlags returns the names of the flags that the left column of a usage has.
func usageFlags(usage string) []string {
	var names []string
	for _, line := range regexp.MustCompile(`(?m)^  -.*?(  |$)`).FindAllString(usage, -1) {
		for _, m := range regexp.MustCompile(`(?:^|[ ,])-([a-zA-Z-]+)`).FindAllStringSubmatch(line, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestUsageNamesEveryFlag keeps usage and declarations together.
func TestUsageNamesEveryFlag(t *testing.T) {
	p := &parser{spec: &Spec{}}
	set, _ := p.flags(true)
	all := usageFlags(Help().Text(true))
	declared := regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([a-z-]+)`).FindAllStringSubmatch(set.FlagUsages(), -1)
	for _, m := range declared {
		if !slices.Contains(all, m[2]) || m[1] != "" && !slices.Contains(all, m[1]) {
			t.Errorf("-h all does not list -%s and -%s", m[1], m[2])
		}
	}
	if len(declared) < 60 {
		t.Errorf("%d flags are declared, want all", len(declared))
	}
	for _, name := range usageFlags(Help().Text(false)) {
		if !slices.Contains(all, name) {
			t.Errorf("-h lists -%s, which is no flag", name)
		}
	}
}

func TestHelpIsTheSameBehindAColon(t *testing.T) {
	for _, args := range []string{"-h", "-h all", "-np 1 a : -h", "-np 1 a : -np 2 -h all"} {
		var asked *cli.HelpError
		_, err := Parse(strings.Fields(args), testGetenv, func(string) {})
		if !errors.As(err, &asked) || asked.Text(asked.All) != Help().Text(strings.HasSuffix(args, "all")) {
			t.Errorf("%s: %v, with other help than gompirun's own", args, err)
		}
	}
}

// TestUsageFitsOnAScreen: -h is for users who need a flag, on a terminal of 80 columns.
func TestUsageFitsOnAScreen(t *testing.T) {
	usage := Help().Text(false)
	lines := strings.Split(strings.TrimSuffix(usage, "\n"), "\n")
	if len(lines) > 40 {
		t.Errorf("%d lines, want 40 or less", len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if example := "gompirun -np 4 -hostfile hosts ./train"; !strings.Contains(usage, example) {
		t.Errorf("no line %q", example)
	}
	if flags := usageFlags(usage); len(flags) < 20 {
		t.Errorf("-h lists %q: want what most users need", flags)
	}
}

func TestPlacementFlagsAndTheirHabits(t *testing.T) {
	tests := []struct {
		line string
		want plan.Policy
	}{
		{"-map-by ppr:2:numa:PE=4 -rank-by node p",
			plan.Policy{Order: plan.ByNuma, PerDomain: 2, PE: 4, RankBy: plan.RankByNode}},
		{"--map-by socket --rank-by core --bind-to socket p",
			plan.Policy{Order: plan.ByPackage, RankBy: plan.RankByFill, BindTo: plan.BindPackage}},
		{"-cpu-set 0-3,8 --use-hwthread-cpus p", plan.Policy{CPUList: "0-3,8", HWThreads: true}},
		{"--cpu-list 1 p", plan.Policy{CPUList: "1"}},
		{"-npersocket 2 p", plan.Policy{Order: plan.ByPackage, PerDomain: 2}},
		{"-cpus-per-proc 4 -bind-to-socket p", plan.Policy{PE: 4, BindTo: plan.BindPackage}},
	}
	for _, tt := range tests {
		if spec, notes, err := parse(tt.line, testGetenv); err != nil || notes != "" || spec.Policy != tt.want {
			t.Errorf("%q: %+v, %q, %v; want %+v", tt.line, spec, notes, err, tt.want)
		}
	}
	for line, want := range map[string]string{
		"-rank-by board p": `-rank-by "board": want slot, node or fill`,
		"-cpu-list x p":    `-cpu-list "x": want numbers of CPUs, as in 0-3,8`,
		"-map-by rack p":   `-map-by "rack": want slot, node, core, hwthread, l3cache, numa, package, or ppr:N:node and the like`,
	} {
		if _, _, err := parse(line, testGetenv); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

// MCA parameters become gompirun's flags, typed or as variables. Parameters that choose hosts,
// interfaces or variables, and cannot be translated, are not ignored.
func TestMCAParameters(t *testing.T) {
	const port, list = "OMPI_MCA_btl_tcp_port_min_v4", "OMPI_MCA_mca_base_env_list"
	for _, tt := range []struct {
		vars map[string]string
		line string
		same string // as this line, without variables
	}{
		{nil, "--mca plm_rsh_agent /a -np 2 --mca plm_rsh_agent /a p", "-rsh /a -np 2 p"},
		{map[string]string{"OMPI_MCA_plm_rsh_agent": "/a"}, "p", "p"}, // behind GOMPI_RSH
		{map[string]string{"OMPI_MCA_btl_tcp_if_include": "eth0"}, "p", "-iface eth0 p"},
		{map[string]string{"OMPI_MCA_btl_tcp_if_exclude": "lo", "PRTE_MCA_rmaps_default_mapping_policy": "node"}, "p",
			"-iface ^lo -map-by node p"},
		{map[string]string{"OMPI_MCA_btl_tcp_if_include": "eth0", "GOMPI_IFACE": "eth1"}, "p", "p"},
		{map[string]string{"OMPI_MCA_btl_tcp_if_include": "eth0"}, "-iface eth1 p", "-iface eth1 p"},
		{map[string]string{"OMPI_MCA_btl_tcp_if_include": "eth0"}, "--mca btl_tcp_if_include eth1 p", "-iface eth1 p"},
		{map[string]string{port: "20000"}, "p", "-port-range 20000-65535 p"},
		{map[string]string{port: "20000"}, "--mca btl_tcp_port_range_v4 10 p", "-port-range 20000-20009 p"},
		{map[string]string{list: "A=1;HERE;X*", "HERE": "value"}, "p : q", "-x-all A=1 -x-all HERE=value p : q"},
		{map[string]string{list: "A=1,B=2", list + "_delimiter": ","}, "p", "-x-all A=1 -x-all B=2 p"},
		{map[string]string{"OMPI_MCA_rmaps_base_oversubscribe": "0"}, "p", "p"},
		{nil, "p : --mca mca_base_env_list A=1 q", "p : -x-all A=1 q"},
	} {
		getenv := func(name string) (string, bool) { v, ok := tt.vars[name]; return v, ok }
		got, _, err := parse(tt.line, getenv)
		want, _, err2 := parse(tt.same, testGetenv)
		if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v %s: %+v, %v, want as %s: %+v, %v", tt.vars, tt.line, got, err, tt.same, want, err2)
		}
	}
	if _, notes, err := parse("p", only("OMPI_MCA_btl_tcp_if_include", "eth0")); err != nil ||
		notes != "gompirun: OMPI_MCA_btl_tcp_if_include: as -iface=eth0\n" {
		t.Errorf("of a variable it says %q, %v", notes, err)
	}
	for line, want := range map[string]string{
		"--mca btl_tcp_if_include a -iface b p":                   `-mca btl_tcp_if_include a: want it, or -iface`,
		"--mca btl_tcp_if_include a --mca btl_tcp_if_include b p": `-mca btl_tcp_if_include a and b: want one of them`,
		"--mca btl_tcp_port_min_v4 x p":                           `-mca btl_tcp_port_min_v4 x: "x": want a number up to 65535`,
		"p : --prtemca btl_tcp_if_include a q":                    `program 2, after ":": -prtemca btl_tcp_if_include: it is for the whole job: want it before the first program`,
		"--mca btl_tcp_if_seq a p":                                `-mca btl_tcp_if_seq a: type -iface LIST for TCP, or -x UCX_NET_DEVICES=LIST for UCX`,
		"--mca rmaps_base_mapping_policy dist p":                  `-map-by "dist": want slot`,
	} {
		if _, _, err := parse(line, testGetenv); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	for agent, want := range map[string]string{"": "ssh -p 22", "/a:ssh": "/a -p 22"} {
		spec, err := Parse([]string{"--mca", "plm_rsh_args", "-p 22", "p"}, only("OMPI_MCA_plm_rsh_agent", agent),
			func(string) {})
		if err != nil || spec.Reach.RSH != want {
			t.Errorf("agent %q: logs in by %+v, %v, want %q", agent, spec, err, want)
		}
	}
	want := `OMPI_MCA_btl_tcp_port_min_v4="x": "x": want a number up to 65535`
	if _, _, err := parse("p", only(port, "x")); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A missing program is no rank's error: the line names the user's probable intention.
func TestSlipsAreAnsweredWithWhatIsMeant(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("A=1", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"docto":                                `"docto": there is no such program here: did you mean gompirun doctor?`,
		"kil 5":                                `"kil": there is no such program here: did you mean gompirun kill?`,
		"OMP_NUM_THREADS=2 ./a":                `"OMP_NUM_THREADS=2" is no program: to set a variable for the ranks type -x OMP_NUM_THREADS=2 in front of it`,
		"./a : -np 1 B=2 ./a":                  `program 2, after ":": "B=2" is no program: `,
		"\u2013np 2 ./a":                       `begins with a dash that is no "-" (U+2013), as a PDF or a word processor has it: type -np`,
		"-np 2 \u2014map-by node a":            `type -map-by`,
		"-x ./a":                               `no program to run: -x has taken "./a" for the name of a variable`,
		"-x ./a ./b":                           `-x "./a": want NAME or NAME=value, and then the program`,
		"-x a.out":                             `no program to run: -x has taken "a.out" for the name of a variable`,
		"-x HERE":                              `no program to run`,
		"-np 99999999999999999999 p":           `-np "99999999999999999999": the number is too large: want at most 2147483647`,
		"-max-restarts 99999999999999999999 p": `the number is too large: want at most 9223372036854775807`,
		"-np -99999999999999999999 p":          `want a whole number, 1 or more`,
		"-map-by :PE=99999999999999999999 p":   `PE=99999999999999999999: the number is too large: want at most 1048576`,
		"-timeout 99999999999999999999 p":      `-timeout "99999999999999999999": the time is too long: want at most 9223372036 seconds`,
		"-N 99999999999999999999 p":            `the number is too large: want at most `,
		"-nnodes 99999999999999999999 p":       `the number is too large: want at most `,
		"-stdin 99999999999999999999 p":        `the number is too large: want at most `,
	} {
		if _, _, err := parse(line, testGetenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if _, err := Parse([]string{"-np 2", "./a"}, testGetenv, func(string) {}); err == nil ||
		err.Error() != `unknown flag "-np 2": type -np 2 as words of their own` {
		t.Errorf("%v, of two words in one", err)
	}
	for _, line := range []string{"sh -c x", "./A=1", "-np 1 docto", "no-such-program"} { // which other hosts may have
		if _, _, err := parse(line, testGetenv); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
