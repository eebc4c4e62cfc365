package mpirun

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

func testGetenv(name string) (string, bool) {
	if name == "HERE" {
		return "value", true
	}
	return "", false
}

func parse(t *testing.T, line string) (*options, string, error) {
	t.Helper()
	var notes bytes.Buffer
	o, err := parseOptions(strings.Fields(line), testGetenv, &notes)
	return o, notes.String(), err
}

func TestFlagsOfTheJob(t *testing.T) {
	o, notes, err := parse(t, "-np 4 -hostfile h -N 2 -map-by node -bind-to core -nooversubscribe -tag-output --timestamp_output "+
		"-output-filename d -stdin all -timeout 1m -kill-delay 0.5 -display-map -report-bindings -q -v prog -np 9")
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if o.hostfile != "h" || o.policy != (plan.Policy{Order: plan.ByNode, PerNode: 2, NoOversubscribe: true, BindTo: plan.BindCore}) {
		t.Errorf("hostfile %q, policy %+v", o.hostfile, o.policy)
	}
	if !o.tag || !o.stamp || o.outputDir != "d" || o.stdin != ctl.StdinAll || !o.displayMap || !o.reportBindings || !o.quiet || !o.verbose {
		t.Errorf("options %+v lack what was given", o)
	}
	if o.timeout != time.Minute || o.killDelay != 500*time.Millisecond {
		t.Errorf("timeout %v, kill delay %v", o.timeout, o.killDelay)
	}
	if len(o.programs) != 1 || o.programs[0].np != 4 || !slices.Equal(o.programs[0].argv, []string{"prog", "-np", "9"}) {
		t.Errorf("programs %+v", o.programs)
	}
}

func TestDefaults(t *testing.T) {
	o, _, err := parse(t, "prog")
	if err != nil || o.killDelay != 2*time.Second || o.timeout != 0 || o.stdin != 0 || o.policy != (plan.Policy{}) || o.programs[0].np != 0 {
		t.Errorf("options %+v, %v", o, err)
	}
}

func TestEveryFlagHasItsOtherNames(t *testing.T) {
	for _, line := range []string{"-np 3 p", "-n 3 p", "-n3 p", "--np=3 p", "-c 3 p"} {
		if o, _, err := parse(t, line); err != nil || o.programs[0].np != 3 {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-N 3 p", "-npernode 3 p", "-map-by ppr:3:node p"} {
		if o, _, err := parse(t, line); err != nil || o.policy.PerNode != 3 || o.policy.Wrap {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-ppn 3 p", "-perhost 3 p"} {
		if o, _, err := parse(t, line); err != nil || o.policy.PerNode != 3 || !o.policy.Wrap {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-hostfile f p", "-machinefile f p", "-f f p"} {
		if o, _, err := parse(t, line); err != nil || o.hostfile != "f" {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{"-H a:2,b p", "-host a:2,b p", "-hosts a:2,b p"} {
		if o, _, err := parse(t, line); err != nil || o.programs[0].hosts != "a:2,b" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestProgramsHaveTheirOwnFlags(t *testing.T) {
	o, notes, err := parse(t, "-np 1 -H a -x A=1 -x HERE -x GONE -x OMP_* p1 : -n 2 -wdir /d -x A=2 p2 x:y : p3")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "GONE") || strings.Contains(notes, "OMP_") {
		t.Errorf("notes %q, want one on GONE", notes)
	}
	want := []program{
		{argv: []string{"p1"}, np: 1, hosts: "a", env: []string{"A=1", "HERE=value"}},
		{argv: []string{"p2", "x:y"}, np: 2, wdir: "/d", env: []string{"A=2"}},
		{argv: []string{"p3"}},
	}
	for i, w := range want {
		g := o.programs[i]
		if !slices.Equal(g.argv, w.argv) || g.np != w.np || g.hosts != w.hosts || g.wdir != w.wdir || !slices.Equal(g.env, w.env) {
			t.Errorf("program %d is %+v, want %+v", i, g, w)
		}
	}
}

func TestWhatSrunMeansOtherwiseIsSaid(t *testing.T) {
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
		var notes bytes.Buffer
		if _, err := parseOptions(strings.Fields(line), inSlurm, &notes); err != nil || notes.String() != want {
			t.Errorf("%q in a job of Slurm: %q, %v; want %q", line, notes.String(), err, want)
		}
	}
	if _, notes, err := parse(t, "-N2 p"); err != nil || notes != "" {
		t.Errorf("-N2 elsewhere: %q, %v", notes, err)
	}
	for _, line := range []string{"-n 4 -c 2 p", "-c2 -np 4 p"} {
		if _, _, err := parse(t, line); err == nil || !strings.Contains(err.Error(), "type -map-by :PE=N") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestUsageNamesEveryFlag keeps usage and declarations together.
func TestUsageNamesEveryFlag(t *testing.T) {
	var o options
	set, _ := o.flags(true, testGetenv, &bytes.Buffer{})
	for _, m := range regexp.MustCompile(`(?:-(\w), )?--([a-z-]+)`).FindAllStringSubmatch(set.FlagUsages(), -1) {
		name := "-" + m[2]
		if m[2] == "quiet" || m[2] == "verbose" {
			name = "-" + m[1]
		}
		if !regexp.MustCompile(name + `\b`).MatchString(usage) {
			t.Errorf("usage does not mention %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  (-[a-z-]+)`).FindAllStringSubmatch(usage, -1) {
		rest, err := set.Parse([]string{m[1], "1", "p"})
		if err != nil && err != cli.ErrHelp && !strings.Contains(err.Error(), "want") {
			t.Errorf("usage mentions %s: %v (%v)", m[1], err, rest)
		}
	}
}

func TestPlacementFlagsAndTheirHabits(t *testing.T) {
	tests := []struct {
		line string
		want plan.Policy
	}{
		{"-map-by ppr:2:numa:PE=4 -rank-by node p", plan.Policy{Order: plan.ByNuma, PerDomain: 2, PE: 4, RankBy: plan.RankByNode}},
		{"--map-by socket --rank-by core --bind-to socket p", plan.Policy{Order: plan.ByPackage, RankBy: plan.RankByFill, BindTo: plan.BindPackage}},
		{"-cpu-set 0-3,8 --use-hwthread-cpus p", plan.Policy{CPUList: "0-3,8", HWThreads: true}},
		{"--cpu-list 1 p", plan.Policy{CPUList: "1"}},
		{"-npersocket 2 p", plan.Policy{Order: plan.ByPackage, PerDomain: 2}},
		{"-cpus-per-proc 4 -bind-to-socket p", plan.Policy{PE: 4, BindTo: plan.BindPackage}},
		{"-bysocket p", plan.Policy{Order: plan.ByPackage}},
	}
	for _, tt := range tests {
		if o, notes, err := parse(t, tt.line); err != nil || notes != "" || o.policy != tt.want {
			t.Errorf("%q: %+v, %q, %v; want %+v", tt.line, o, notes, err, tt.want)
		}
	}
	for line, want := range map[string]string{
		"-rank-by board p": `-rank-by "board": want slot, node or fill`,
		"-cpu-list x p":    `-cpu-list "x": want numbers of CPUs, as in 0-3,8`,
		"-map-by rack p":   `-map-by "rack": want slot, node, core, hwthread, numa, package, ppr:N:node, ppr:N:numa or ppr:N:package`,
	} {
		if _, _, err := parse(t, line); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}
