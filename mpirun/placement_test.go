//go:build linux

package mpirun

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/hostinfo"
	"gompi/mpirun/internal/plan"
)

// allowedHere returns the CPUs that this process may use, as Linux writes them.
func allowedHere(t *testing.T) (list string, cpus []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return plan.Ranges(cpus), cpus
}

// reportBinding is a program that prints its rank and its CPUs by the kernel.
const reportBinding = `echo "$RANK $(sed -n 's/Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"`

// runBound runs gompirun and returns each rank's own report of its CPUs, and -report-bindings's.
func runBound(t *testing.T, command ...string) (ranks, report map[string]string) {
	t.Helper()
	cmd := exec.Command(command[0], append(command[1:], "sh", "-c", reportBinding)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", command, err, &errs)
	}
	ranks, report = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		rank, cpus, _ := strings.Cut(strings.TrimSpace(line), " ")
		ranks[rank] = cpus
	}
	for _, m := range regexp.MustCompile(`rank (\d+) on \S+: (?:bound to |not bound \()cpus ([0-9,-]+)`).FindAllStringSubmatch(errs.String(), -1) {
		report[m[1]] = m[2]
	}
	return ranks, report
}

// -report-bindings agrees with the ranks' own view, for any binding.
func TestBindingsAreReportedAsTheKernelHasThem(t *testing.T) {
	all, cpus := allowedHere(t)
	first := strconv.Itoa(cpus[0])
	tests := []struct {
		flags string
		want  string // of rank 0; "" if it depends on the machine
	}{
		{"-np 1", all},
		{"-np 2 -bind-to none", all},
		{"-np 1 -cpu-list " + first, first},
		{"-np 3 -cpu-list " + first, first},
		{"-np 1 -bind-to hwthread", first},
		{"-np 1 -bind-to core", ""},
		{"-np 1 -bind-to numa", ""},
		{"-np 1 -bind-to socket", ""},
		{"-np 2 -map-by core", ""},
		{"-np 2 -map-by numa", ""},
		{"-map-by ppr:1:numa", ""},
		{"-np 2 -map-by package -rank-by fill", ""},
		{"-np 1 -map-by slot:PE=1", ""},
		{"-use-hwthread-cpus", first},
	}
	for _, tt := range tests {
		args := append([]string{"gompirun", "-report-bindings", "-q"}, strings.Fields(tt.flags)...)
		ranks, report := runBound(t, args...)
		if len(ranks) == 0 || len(report) != len(ranks) {
			t.Errorf("%s: ranks say %v, the report %v", tt.flags, ranks, report)
		}
		for rank, cpus := range ranks {
			if report[rank] != cpus {
				t.Errorf("%s: rank %s is bound to %q, the report says %q", tt.flags, rank, cpus, report[rank])
			}
		}
		if tt.want != "" && ranks["0"] != tt.want {
			t.Errorf("%s: rank 0 is bound to %q, want %q", tt.flags, ranks["0"], tt.want)
		}
	}
}

// Where gompirun itself is bound, by another launcher or a batch system, ranks
// keep to that, and there are slots for that alone.
func TestRanksKeepToTheBindingOfGompirun(t *testing.T) {
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip("needs taskset, of util-linux")
	}
	_, cpus := allowedHere(t)
	last := strconv.Itoa(cpus[len(cpus)-1])
	for _, flags := range []string{"", "-bind-to core", "-bind-to numa", "-bind-to none"} {
		ranks, _ := runBound(t, append([]string{"taskset", "-c", last, "gompirun", "-q"}, strings.Fields(flags)...)...)
		if len(ranks) != 1 || ranks["0"] != last {
			t.Errorf("%s: ranks are bound to %v, want one on %s", flags, ranks, last)
		}
	}
}

// A control group that has the time of less processors than there are makes
// fewer slots.
func TestSlotsKeepToTheQuotaOfAControlGroup(t *testing.T) {
	if n := len(hostinfo.Host().Cores); n < 2 {
		t.Skip("needs two cores")
	}
	dir := filepath.Join("/sys/fs/cgroup/cpu", fmt.Sprintf("gompi-test-%d", os.Getpid()))
	set := [][2]string{{"cpu.cfs_period_us", "100000"}, {"cpu.cfs_quota_us", "90000"}}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		dir = filepath.Join("/sys/fs/cgroup", filepath.Base(dir))
		set = [][2]string{{"cpu.max", "90000 100000"}}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs control groups that can be made: %v", err)
	}
	defer os.Remove(dir)
	for _, s := range set {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0); err != nil {
			t.Skipf("needs control groups that limit processor time: %v", err)
		}
	}
	out, err := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && gompirun -display-map sh -c 'echo $GOMAXPROCS $OMP_NUM_THREADS'`, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if !strings.Contains(string(out), "localhost: 1 rank on 1 slot,") ||
		!strings.Contains(string(out), "with the time of 1") || !slices.Contains(lines, "2 1") {
		t.Errorf("%s", out)
	}
}
