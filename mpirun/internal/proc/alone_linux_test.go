package proc

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/env"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		hold(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// hold maps files, keeps files whose names begin with open_mpi open, and waits for its input's
// end.
func hold(files []string) {
	for _, file := range files {
		fd, err := unix.Open(file, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
		if err != nil {
			panic(err)
		}
		if strings.HasPrefix(filepath.Base(file), "open_mpi") {
			unix.Unlink(file)
			continue
		}
		if _, err := unix.Mmap(fd, 0, 1, unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
			panic(err)
		}
		unix.Close(fd)
	}
	os.Stdout.WriteString("held\n")
	os.Stdin.Read(make([]byte, 1))
}

// holding starts a process with an environment that holds files with these names.
func holding(t *testing.T, environ []string, names []string) int {
	t.Helper()
	args := []string{"hold"}
	for _, name := range names {
		args = append(args, filepath.Join(t.TempDir(), name))
	}
	return running(t, environ, os.Args[0], args...)
}

// running starts a process with an environment. The process says when it holds its files.
func running(t *testing.T, environ []string, prog string, args ...string) int {
	t.Helper()
	cmd := exec.Command(prog, args...)
	cmd.Env = environ
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

func TestAnMPIProgramIsAlone(t *testing.T) {
	ours := env.JobID + "=j"
	for _, tt := range []struct {
		name    string
		environ []string
		files   []string
		why     string // "" for nothing
		sure    bool
	}{
		{"Open MPI", []string{ours}, []string{"open_mpi.0000", "libmpi.so.40.30.4"}, "it uses Open MPI (/", true},
		{"Open MPI without variables", []string{}, []string{"open_mpi.0003", "libmpi.so.40"},
			"it uses Open MPI (/", true},
		{"beside PyTorch", []string{ours}, []string{"open_mpi.0000", "libmpi.so.40", "libtorch_cpu.so"},
			"it uses Open MPI (/", false},
		{"loaded", []string{ours}, []string{"libmpi.so.40"}, "", false},
		{"Open MPI in this program", []string{ours}, []string{"open_mpi.0000"},
			"it uses Open MPI (linked statically), ", true},
		{"Open MPI by the standard's interface", []string{ours}, []string{"open_mpi.0000", "libmpi_abi.so.1"},
			"it uses Open MPI (/", true},
		{"any MPI by the standard's interface", []string{ours}, []string{"libmpi_abi.so.1"}, "", false},
		{"any such MPI without variables", []string{}, []string{"libmpi_abi.so.1"}, "it uses MPI (/", true},
		{"a rank of Open MPI's mpirun", []string{ours, "PMIX_RANK=0"},
			[]string{"open_mpi.0000", "libmpi.so.40"}, "", false},
		{"meant so", []string{ours, env.Boot + "=alone"}, []string{"open_mpi.0000", "libmpi.so.40"}, "", false},
		{"a rank of another job", []string{env.JobID + "=k"}, []string{"open_mpi.0000", "libmpi.so.40"}, "", false},
		{"MPICH", []string{ours}, []string{"libmpich.so.12.2.2"}, "", false},
		{"MPICH without variables", []string{}, []string{"libmpich.so.12.2.2"}, "it uses MPI (/", true},
		{"MPICH with others", []string{"HOME=/"}, []string{"libmpi.so.12"}, "it uses MPI (/", true},
		{"a title in their place", []string{"worker 1 of 2"}, []string{"libmpi.so.12"}, "", false},
		{"no MPI", []string{}, []string{"libm.so.6"}, "", false},
	} {
		pid := holding(t, tt.environ, tt.files)
		why, sure := Alone(pid, "j")
		if !strings.HasPrefix(why, tt.why) || (why == "") != (tt.why == "") || why != "" && sure != tt.sure {
			t.Errorf("%s: %q, sure %v; want %q, %v", tt.name, why, sure, tt.why, tt.sure)
		}
	}
}

// A program without MPI in it that has Open MPI's mark is one of Open MPI's own. This test's own
// program is no such, since worldName is in it.
func TestOpenMPIsMpirunIsNotAlone(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "open_mpi.0000")
	pid := running(t, []string{env.JobID + "=j"}, "sh", "-c", `exec 3>"$0"; rm "$0"; echo held; read line`, mark)
	if why, sure := Alone(pid, "j"); !beganOpenMPI(dirOf(pid)) || why != "" || sure {
		t.Errorf("%q, sure %v; want a process with the mark, and nothing", why, sure)
	}
}
