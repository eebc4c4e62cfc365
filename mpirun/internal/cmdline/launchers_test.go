package cmdline

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/internal/cli"
)

// An otherLauncher is a program whose options stand in a section of docs/options.md.
type otherLauncher struct {
	section string
	program string
	version []string // makes it print its version
	name    string   // stands beside the version
	help    []string // makes it print its options
	option  string   // matches what a line of those begins with, and has the names in parentheses
	least   int      // the number of its options
}

func otherLaunchers() []otherLauncher {
	version, torchVersion := []string{"--version"},
		[]string{"-c", `from importlib.metadata import version; print("torch", version("torch"))`}
	mpirun := otherLauncher{"Open", "mpirun", version, "(Open", []string{"--allow-run-as-root", "--help", "all"},
		`^ {0,3}(-[\w-]+(?:\|-[\w-]+)*)`, 100}
	openmpi := mpirun
	openmpi.program = "mpirun.openmpi" // where mpirun may be MPICH's
	python := otherLauncher{"torchrun", "python3", torchVersion, "torch",
		[]string{"-m", "torch.distributed.run", "--help"}, `^  ((?:-\w(?: [A-Z]+)?, )?-[\w-]+)`, 18}
	system := python
	system.program = "/usr/bin/python3" // where python3 may be another
	return []otherLauncher{
		mpirun, openmpi,
		{"hydra", "mpiexec.hydra", version, "Version", []string{"-help"}, `^    (-[\w-]+(?:/-[\w-]+)*)`, 40},
		python, system,
		{"srun", "srun", version, "slurm", []string{"--help"}, `^ +((?:-\w, +)?-[\w-]+(?: +--[a-z-]+)?)`, 100},
	}
}

// reports returns the launcher's output on stdout.
func (l *otherLauncher) reports(args []string) string {
	out, _ := exec.Command(l.program, args...).Output() // a launcher without help fails
	return string(out)
}

// options returns the names in the launcher's help, sorted, without dashes.
func (l *otherLauncher) options() []string {
	var names []string
	for _, m := range regexp.MustCompile("(?m)"+l.option).FindAllStringSubmatch(l.reports(l.help), -1) {
		for _, name := range regexp.MustCompile(`-+\w[\w-]*`).FindAllString(m[1], -1) {
			names = append(names, plainName(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// takes reports whether the launcher knows an option. Open MPI 5 has no help that names them, but
// it says which option it does not know first.
func (l *otherLauncher) takes(name string) bool {
	option := "--" + name
	if len(name) == 1 {
		option = "-" + name
	}
	out, _ := exec.Command(l.program, "--allow-run-as-root", option, "--no-such-option").CombinedOutput()
	return !strings.Contains(string(out), "Option: "+option+"\n")
}

// optionLists returns the lists of testdata/options.txt by section and version.
func optionLists(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/options.txt")
	if err != nil {
		t.Fatal(err)
	}
	lists, key := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			lists[key] = append(lists[key], strings.Fields(line)...)
		default:
			key = strings.TrimSpace(line)
		}
	}
	return lists
}

// TestOptionsOfOtherLaunchersAreComplete compares the page with the lists of today's launchers,
// and with the help of installed launchers.
func TestOptionsOfOtherLaunchersAreComplete(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "slurm.conf") // srun wants one, to print its help
	if err := os.WriteFile(conf, []byte("ClusterName=c\nSlurmctldHost=h\nNodeName=h\nPartitionName=p Nodes=ALL\nTaskPlugin=task/affinity\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLURM_CONF", conf)
	page, lists := optionRows(t), optionLists(t)
	if len(lists) != 5 {
		t.Errorf("%d lists of today's launchers, want 5", len(lists))
	}
	onPage := func(t *testing.T, section string, names []string) {
		known := namesOf(page[section])
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("the page lacks %s", name)
			}
		}
	}
	for key, list := range lists {
		section, _, _ := strings.Cut(key, " ")
		t.Run("list of "+key, func(t *testing.T) { onPage(t, section, list) })
	}
	for _, l := range otherLaunchers() {
		t.Run(l.program, func(t *testing.T) {
			says := l.reports(l.version)
			if !strings.Contains(says, l.name) {
				t.Skipf("no %s that says %q", l.program, l.name)
			}
			key := l.section + " " + regexp.MustCompile(`\d+(\.\d+)+`).FindString(says)
			list, names := lists[key], l.options()
			onPage(t, l.section, names)
			switch {
			case list != nil && len(names) == 0:
				if known := slices.DeleteFunc(slices.Clone(list),
					func(name string) bool { return !l.takes(name) }); !slices.Equal(known, list) {
					t.Errorf("%s: takes %q, want the list %q", key, known, list)
				}
			case list != nil && !slices.Equal(names, list):
				t.Errorf("%s: names %q, want the list %q", key, names, list)
			case len(names) < l.least:
				t.Errorf("%s: %d options, want its help\n%s", key, len(names), l.reports(l.help))
			}
		})
	}
}

// TestEveryHabitIsOnThePage finds the flags of other launchers on the page; gompirun -h all has
// gompirun's own.
func TestEveryHabitIsOnThePage(t *testing.T) {
	known := namesOf(slices.Concat(slices.Collect(maps.Values(optionRows(t)))...))
	for _, h := range cli.LauncherHabits() {
		for _, name := range h.Names {
			if !slices.Contains(known, name) {
				t.Errorf("the page lacks %s", name)
			}
		}
	}
}

// namesOf returns the plain names of the options in rows.
func namesOf(rows []optionRow) []string {
	var names []string
	for _, row := range rows {
		for _, option := range row.options {
			names = append(names, plainName(option))
		}
	}
	return names
}
