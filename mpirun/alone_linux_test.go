package mpirun

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// aloneMain leaves behind what MPI_Init of Open MPI does, in a folder of its own, and ends well
// when it gets USR1.
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
	<-signals
}

// TestRanksThatAreJobsOfOneFail runs programs that do as those of Open MPI do, of which a wrapper
// starts one and nothing the other.
func TestRanksThatAreJobsOfOneFail(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"alone"}, {"sh", "-c", "trap : USR1; alone; true"}} {
		k := startTalk(t, append([]string{"-np", "2"}, args...)...)
		if line := k.expect("is rank 0 of 1, as each of 2 will be: it uses Open MPI (/"); !strings.Contains(line, "libmpi.so.40.30.4") {
			t.Errorf("%q does not say where it is", line)
		}
		k.cmd.Process.Signal(syscall.SIGUSR1)
		k.expect(" ended with status 0, as rank 0 of 1 and not of 2 (pid ")
		k.ends(1)
	}
}
