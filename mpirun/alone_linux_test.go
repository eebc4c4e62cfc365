package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/env"
)

// aloneMain leaves behind the traces of Open MPI's MPI_Init, in a folder of its own, prints that
// it is ready, and ends well on USR1.
func aloneMain() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	dir, err := os.MkdirTemp("", "")
	if err == nil {
		defer os.RemoveAll(dir)
		_, err = os.Create(filepath.Join(dir, "open_mpi.0000"))
	}
	if lib, create := os.Create(filepath.Join(dir, "libmpi.so.40.30.4")); err == nil && create == nil {
		_, err = unix.Mmap(int(lib.Fd()), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println("ready")
	<-signals
}

// TestRanksThatAreJobsOfOneFail runs programs that behave like Open MPI's: directly, and under a
// wrapper.
func TestRanksThatAreJobsOfOneFail(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"alone"}, {"sh", "-c", "trap : USR1; alone; true"}} {
		k := startTalk(t, append([]string{"-np", "2"}, args...)...)
		// The note comes once one rank is seen. The signal kills another that is not ready for it.
		for note, ready := "", 0; note == "" || ready < 2; {
			switch line := k.expect(""); {
			case line == "ready":
				ready++
			case strings.Contains(line, "is rank 0 of 1, as each of 2 will be: it uses Open MPI (/"):
				if note = line; !strings.Contains(line, "libmpi.so.40.30.4") {
					t.Errorf("%q does not say where it is", line)
				}
			}
		}
		k.cmd.Process.Signal(syscall.SIGUSR1)
		k.expect(" ended with status 0, as rank 0 of 1 and not of 2 (pid ")
		k.ends(1)
	}
}

// TestRanksWithoutTheirVariablesFail runs ranks behind wrappers that lose the environment, the
// descriptors, too, and that change the user.
func TestRanksWithoutTheirVariablesFail(t *testing.T) {
	t.Parallel()
	prog := forAllUsers(t, "rank")
	const lost = "started by gompirun as one of several ranks ("
	bare := []string{"env", "-i", "sh", "-c", `exec 3>&- 4>&- 5>&-; "$@"`, "sh"}
	wrappers := [][]string{{"env", "-i"}, bare}
	if os.Getuid() == 0 {
		wrappers = append(wrappers, slices.Concat(bare, []string{"setpriv", "--reuid", "65534"}))
	}
	for _, wrapper := range wrappers {
		args := append(wrapper, prog, "meet")
		status, out, errs := runJob(t, append([]string{"-np", "2"}, args...)...)
		if status != 3 || out != "" || !strings.Contains(errs, lost) {
			t.Errorf("%q: status %d, %q, %q; want 3 and %q", args, status, out, errs, lost)
		}
		if status, out, errs := runJob(t, append([]string{"-np", "1"}, args...)...); status != 0 ||
			!strings.Contains(out, "rank 0 of 1, ") {
			t.Errorf("%q: status %d, %q, %q; want rank 0 of 1", args, status, out, errs)
		}
	}
	if status, out, errs := runJob(t, "-np", "2", "env", "-i", env.Boot+"=alone", prog, "meet"); status != 0 ||
		!strings.Contains(out, "rank 0 of 1, ") {
		t.Errorf("%s=alone: status %d, %q, %q; want rank 0 of 1", env.Boot, status, out, errs)
	}
}

// forAllUsers copies a program to where other users may run it.
func forAllUsers(t *testing.T, name string) string {
	t.Helper()
	prog, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("cp", prog, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, path := range []string{to, filepath.Dir(to), filepath.Dir(filepath.Dir(to))} { // the test's own
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestProgramsThatBeginTooLateFail runs ranks whose wrapper ends before its program begins. The
// program joins by inherited descriptors, by the agent's socket, or by PMI.
func TestProgramsThatBeginTooLateFail(t *testing.T) {
	t.Parallel()
	const late = "its program began after the process that gompirun had started was over"
	for _, prog := range []string{"rank meet", "rank meet 3>&- 4>&- 5>&-",
		"pmi 'cmd=init pmi_version=1 pmi_subversion=1'"} {
		status, _, errs := runJob(t, "-np", "2", "sh", "-c",
			`p=$$; (while [ -d /proc/$p ]; do :; done; exec `+prog+`) & exit 0`)
		if status != 1 || !strings.Contains(errs, late) {
			t.Errorf("%s: status %d, %q; want 1 and %q", prog, status, errs, late)
		}
	}
}
