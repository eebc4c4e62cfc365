package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/internal/env"
	"gompi/mpirun/internal/testbed"
)

// byHabit are variables that users of torchrun and Slurm export by habit.
var byHabit = []string{"MASTER_PORT=12340", "MASTER_ADDR=nowhere.invalid", "WORLD_SIZE=7", "RANK=9", "LOCAL_RANK=8",
	"OMP_NUM_THREADS=3"}

// replacedLine is gompirun's line about the replaced variables.
var replacedLine = regexp.MustCompile(`(?m)^gompirun: replaced for the ranks: LOCAL_RANK=8 by what each rank is, MASTER_ADDR=nowhere.invalid by \S+, MASTER_PORT=12340 by \d+, RANK=9 by what each rank is, WORLD_SIZE=7 by \d+ \(-master-addr `)

// checkEnvironments checks the environments printed by the ranks of the latest job with its
// output in dir: every name once, gompirun's value for the identity of ranks, and the user's for
// all else.
func checkEnvironments(t *testing.T, dir string, ranks, size int) {
	t.Helper()
	runs, err := os.ReadDir(dir) // of the job: a restart has a folder of its own
	if err != nil {
		t.Fatal(err)
	}
	masters := map[string]bool{}
	for r := range ranks {
		data, err := os.ReadFile(fmt.Sprintf("%s/%s/rank.%d/stdout", dir, runs[len(runs)-1].Name(), r))
		if err != nil {
			t.Fatal(err)
		}
		vars := map[string]string{}
		for kv := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
			name, value, _ := strings.Cut(kv, "=")
			if old, twice := vars[name]; twice {
				t.Errorf("rank %d has %s=%q and %s=%q", r, name, old, name, value)
			}
			vars[name] = value
		}
		got := fmt.Sprintf("RANK=%s WORLD_SIZE=%s LOCAL_RANK=%s OMP_NUM_THREADS=%s", vars["RANK"], vars["WORLD_SIZE"],
			vars["LOCAL_RANK"], vars["OMP_NUM_THREADS"])
		if want := fmt.Sprintf("RANK=%d WORLD_SIZE=%d LOCAL_RANK=%s OMP_NUM_THREADS=3", r, size,
			vars["GOMPI_LOCAL_RANK"]); got != want {
			t.Errorf("rank %d has %s, want %s", r, got, want)
		}
		masters[vars["MASTER_ADDR"]+":"+vars["MASTER_PORT"]] = true
		if vars["MASTER_ADDR"] == "nowhere.invalid" || vars["MASTER_PORT"] == "12340" {
			t.Errorf("rank %d is to meet at %s:%s, want gompirun's choice", r, vars["MASTER_ADDR"], vars["MASTER_PORT"])
		}
	}
	if len(masters) != 1 {
		t.Errorf("ranks meet at %v, want one address", masters)
	}
}

// However ranks are started, each has every variable once, and one line names the user's replaced
// variables.
func TestRanksHaveEachVariableOnce(t *testing.T) {
	t.Parallel() // it waits for logins and for Slurm

	show := []string{"cat", "/proc/self/environ"} // not a shell, which would have each variable once
	check := func(t *testing.T, ranks, size int, cmd *exec.Cmd) {
		t.Helper()
		dir := t.TempDir()
		at := slices.Index(cmd.Args, "gompirun") + 1
		cmd.Args = slices.Insert(cmd.Args, at, "-output-filename", dir)
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env, byHabit...)
		status, _, lines := finish(t, cmd)
		output := strings.Join(lines, "\n")
		if status != 0 {
			t.Fatalf("status %d\n%s", status, output)
		}
		checkEnvironments(t, dir, ranks, size)
		if n := len(replacedLine.FindAllString(output, -1)); n != 1 {
			t.Errorf("what was replaced is said %d times, want once:\n%s", n, output)
		}
	}
	gompirun := func(args ...string) *exec.Cmd { return exec.Command("gompirun", append(args, show...)...) }
	t.Run("local", func(t *testing.T) { check(t, 2, 2, gompirun("-np", "2")) })
	t.Run("restart", func(t *testing.T) {
		again := "test -e $0 || { >$0; exit 1; }"
		cmd := exec.Command("gompirun", append(append([]string{"-max-restarts", "1", "-np", "1"}, show...), ":", "-np",
			"1", "sh", "-c", again, t.TempDir()+"/again")...)
		check(t, 1, 2, cmd)
	})
	t.Run("ssh", func(t *testing.T) {
		b := testbed.Make(t, testbed.Config{Hosts: 2,
			SSHD: func(int) string { return "SetEnv RANK=6 MASTER_PORT=7 SLURM_GTIDS=0" }})
		check(t, 4, 4, gompirun("-rsh", b.RSH(), "-H", "host1:2,host2:2"))
	})
	t.Run("srun", func(t *testing.T) {
		bed := testbed.NewSlurm(t, 2)
		check(t, 4, 4, bed.Command("salloc", append([]string{"-Q", "-N2", "--ntasks-per-node=2", "gompirun"},
			show...)...))
	})
	t.Run("nodes", func(t *testing.T) {
		args := []string{"-nnodes", "2", "-rdzv-endpoint", place(t), "-start-timeout", "60", "-node-rank"}
		one := startNode(t, append(byHabit, testToken), append(append(slices.Clone(args), "1"), show...)...)
		zero := gompirun(append(args, "0")...)
		zero.Env = append(os.Environ(), testToken)
		check(t, 2, 2, zero)
		one.wants(t, 0)
	})
	t.Run("-x", func(t *testing.T) {
		check(t, 2, 2, gompirun("-np", "2", "-x", "MASTER_PORT=12340", "-x", "RANK=9"))
	})
}

// A rank's own variables are not the user's.
func TestVariablesOfARankAboveAreNotReported(t *testing.T) {
	cmd := exec.Command("gompirun", "-np", "1", "gompirun", "-oversubscribe", "-np", "2", "printenv", "RANK",
		"WORLD_SIZE", "MASTER_PORT")
	status, out, output := finish(t, cmd)
	if status != 0 || strings.Count(out, "\n") != 6 || strings.Join(output, "") != "" {
		t.Errorf("status %d, %q, said %q, want three values of two ranks and nothing said", status, out, output)
	}
}

// Without ssh and Slurm it is not known by which address a host is reached. Its name
// is one that only the launcher's command knows.
func TestTheMasterHasAnAddressWhereItsNameDoesNotResolve(t *testing.T) {
	b := testbed.New(t, 2)
	rsh := filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nhost=$1; shift\nexec " + b.RSH() + ` host${host#pod} "unset SSH_CONNECTION; $*"` + "\n"
	writeProgram(t, rsh, script)
	status, out, output := finish(t, exec.Command("gompirun", "-q", "-rsh", rsh, "-H", "pod2,pod1", "printenv",
		"MASTER_ADDR"))
	if want := b.Addr(2) + "\n" + b.Addr(2) + "\n"; status != 0 || out != want {
		t.Errorf("status %d, %q, want %q\n%s", status, out, want, strings.Join(output, "\n"))
	}
}

func TestRanksThatAreAloneByTheUsersEnvironmentAreReported(t *testing.T) {
	t.Setenv(env.Boot, "alone")
	const warning = "GOMPI_BOOT=alone is set: each of 2 ranks is rank 0 of 1"
	if status, out, errs := runJob(t, "-np", "2", "rank", "meet"); status != 0 ||
		strings.Count(out, "rank 0 of 1,") != 2 || !strings.Contains(errs, warning) {
		t.Errorf("status %d, %q, %q; want two ranks alone, and a line about it", status, out, errs)
	}
	for _, args := range [][]string{{"-np", "1", "rank", "meet"}, {"-x", env.Boot + "=", "-np", "2", "rank", "meet"}} {
		if _, _, errs := runJob(t, args...); strings.Contains(errs, warning) {
			t.Errorf("%q: %q", args, errs)
		}
	}
	os.Unsetenv(env.Boot)
	if _, _, errs := runJob(t, "-x", env.Boot+"=alone", "-np", "2", "rank", "meet"); strings.Contains(errs, warning) {
		t.Errorf("meant so: %q", errs)
	}
}
