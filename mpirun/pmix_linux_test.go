package mpirun

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/mpirun/internal/testbed"
)

// A pmixLauncher starts n processes by a launcher that speaks PMIx, with more variables.
type pmixLauncher func(t *testing.T, n string, vars []string, args ...string) (status int, stdout, stderr string)

// prterun is the launcher of Open MPI 5, of PATH or of make peers.
func prterun(t *testing.T) pmixLauncher {
	t.Helper()
	path, err := exec.LookPath("prterun")
	if err != nil {
		path, err = filepath.Abs("../bin/peers/openmpi/bin/prterun")
	}
	if _, missing := exec.LookPath(path); err != nil || missing != nil {
		t.Skip("left out: there is no prterun, of Open MPI 5 (make peers PEERS=openmpi)")
	}
	return onOneHost(path, "--allow-run-as-root", "--map-by", "slot:OVERSUBSCRIBE", "-np")
}

// openMPI is the mpirun of Open MPI 4. Its ranks are told that each is on a host of its own: on one
// they would meet by a file.
func openMPI(t *testing.T) pmixLauncher {
	t.Helper()
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		t.Skip("left out: there is no mpirun.openmpi (package openmpi-bin)")
	}
	start := onOneHost("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np")
	return func(t *testing.T, n string, vars []string, args ...string) (int, string, string) {
		t.Helper()
		vars = append(slices.Clone(vars), "PMIX_MCA_psec=native") // it warns without munge
		return start(t, n, vars, append([]string{"env", "OMPI_COMM_WORLD_LOCAL_SIZE=1"}, args...)...)
	}
}

func onOneHost(line ...string) pmixLauncher {
	return func(t *testing.T, n string, vars []string, args ...string) (int, string, string) {
		t.Helper()
		return runCommand(t, "env", slices.Concat(vars, line, []string{n}, args)...)
	}
}

// srunPMIx is srun --mpi=pmix, on two nodes.
func srunPMIx(t *testing.T) pmixLauncher {
	t.Helper()
	bed := testbed.NewSlurm(t, 2)
	if list, _ := bed.Command("srun", "--mpi=list").CombinedOutput(); !strings.Contains(string(list), "pmix") {
		t.Skipf("left out: this Slurm has no plugin for PMIx: %s", list)
	}
	return func(t *testing.T, n string, vars []string, args ...string) (int, string, string) {
		t.Helper()
		words := slices.Concat([]string{"-i"}, bed.Env(), vars, []string{"srun", "--mpi=pmix", "-N2", "-n" + n})
		return runCommand(t, "env", append(words, args...)...)
	}
}

func TestRanksMeetOverPMIx(t *testing.T) {
	t.Parallel() // it waits for launchers
	for name, open := range map[string]func(*testing.T) pmixLauncher{"prterun": prterun, "srun": srunPMIx,
		"mpirun": openMPI} {
		t.Run(name, func(t *testing.T) {
			start := open(t)
			t.Run("C", func(t *testing.T) { meetInC(t, start) })
			t.Run("Go", func(t *testing.T) { meetInGo(t, start) })
		})
	}
}

// meetInC runs a program in C on gompi's MPI library.
func meetInC(t *testing.T, start pmixLauncher) {
	gompirun, progs := withMPI(t, "mpicc.openmpi")
	vars := []string{"LD_LIBRARY_PATH=" + filepath.Join(filepath.Dir(gompirun), "lib/openmpi")}
	status, out, errs := start(t, "4", vars, progs[0], "library")
	areRanks(t, "a program in C", 4, asOpenMPI, status, out, errs)
	if status, _, errs := start(t, "3", vars, progs[0], "abort", "1"); status == 0 {
		t.Errorf("MPI_Abort on rank 1: status 0\n%s", errs)
	}
}

// meetInGo runs a program in Go. Without C it cannot open PMIx's library.
func meetInGo(t *testing.T, start pmixLauncher) {
	self, err := exec.LookPath("world")
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := start(t, "4", nil, self)
	if !builtWithC() { // launchers end the others when the first has failed
		if status == 0 || out != "" || !strings.Contains(errs, "built without C (CGO_ENABLED=0)") {
			t.Errorf("status %d, %q, %q; want that it was built without C", status, out, errs)
		}
		return
	}
	wantWorld(t, 4, status, out, errs)
	if status, _, errs := start(t, "4", nil, self, "abort", "1"); status == 0 {
		t.Errorf("an abort of rank 1: status 0\n%s", errs)
	}
	if status, out, errs := start(t, "4", nil, self, "kill", "1"); status == 0 {
		t.Errorf("a killed rank: status 0\n%s%s", out, errs)
	}
	begun := time.Now()
	status, out, errs = start(t, "4", nil, self, "absent", "1")
	if took := time.Since(begun); status == 0 || out != "" || took > soon {
		t.Errorf("a rank that ends before it has joined: status %d after %v\n%s%s", status, took, out, errs)
	}
}

func builtWithC() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"})
}
