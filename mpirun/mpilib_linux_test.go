package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gompi/internal/env"
	"gompi/internal/stress"
	"gompi/internal/version"
	"gompi/mpirun/internal/testbed"
)

var mpiScratch string // the folder of buildMPI, removed when all tests are over

// buildMPI builds a gompirun with gompi's MPI libraries beside it, and returns its path; where
// MPI_BUILT in the environment names a folder, they are there, as .ci/test has made them once for
// all.
var buildMPI = sync.OnceValues(func() (gompirun string, err error) {
	if dir := os.Getenv("MPI_BUILT"); dir != "" {
		return filepath.Join(dir, "gompirun"), nil
	}
	if mpiScratch, err = os.MkdirTemp("", "mpi"); err != nil {
		return "", err
	}
	gompirun = filepath.Join(mpiScratch, "gompirun")
	if out, err := exec.Command("go", "build", "-o", gompirun, "./gompirun").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./gompirun: %w\n%s", err, out)
	}
	build := exec.Command("mpi/libmpi/build", filepath.Join(mpiScratch, "lib"), mpiVersion)
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	return gompirun, nil
})

// withMPI returns a gompirun that has gompi's MPI libraries, and a program by each of the
// compilers.
func withMPI(t *testing.T, compilers ...string) (gompirun string, progs []string) {
	t.Helper()
	if os.Getenv("MPI_BUILT") == "" {
		stress.Long(t, "it links libgompi-mpi.so")
	}
	for _, compiler := range compilers {
		progs = append(progs, compileMPI(t, compiler))
	}
	gompirun, err := buildMPI()
	if err != nil {
		t.Fatal(err)
	}
	return gompirun, progs
}

// withRPATH returns a program that finds its own MPI library before LD_LIBRARY_PATH.
func withRPATH(t *testing.T, compiler string) string {
	t.Helper()
	prog := filepath.Join(t.TempDir(), "mpi")
	libs, err := exec.Command("gcc", "-print-file-name=libmpich.so").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(filepath.Dir(strings.TrimSpace(string(libs))))
	if err != nil {
		t.Fatal(err)
	}
	rpath := "-Wl,--disable-new-dtags,-rpath," + folder
	if out, err := exec.Command(compiler, "-o", prog, rpath, "testdata/mpi/mpi.c").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return prog
}

// areRanks fails the test unless a job has ended well, whose n ranks each have written that they
// are one of n and run on a library.
func areRanks(t *testing.T, what string, n int, library string, status int, out, errs string) {
	t.Helper()
	for r := range n {
		for _, want := range []string{fmt.Sprintf("rank %d of %d: sum %d\n", r, n, n*(n-1)/2),
			fmt.Sprintf("rank %d on %s", r, library)} {
			if strings.Count(out, want) != 1 {
				t.Errorf("%s: no %q", what, want)
			}
		}
	}
	if status != 0 || t.Failed() {
		t.Fatalf("%s: status %d\n%s%s", what, status, out, errs)
	}
}

const (
	mpiVersion = version.Number + ", commit v-test"
	asOpenMPI  = "gompi " + mpiVersion + ", as Open MPI"
	asMPICH    = "gompi " + mpiVersion + ", as MPICH"
)

// Programs of Open MPI run on gompi, programs of MPICH on their own library, and both by
// -mpi-lib.
func TestMPIProgramsRunOnTheLibraryThatIsChosen(t *testing.T) {
	gompirun, progs := withMPI(t, "mpicc.openmpi", "mpicc.mpich")
	openMPI, mpich := progs[0], progs[1]
	onLoopback(t)
	held, heldMPICH := withRPATH(t, "mpicc.openmpi"), withRPATH(t, "mpicc.mpich")
	for _, tt := range []struct {
		what    string
		args    []string
		library string
	}{
		{"Open MPI", []string{openMPI}, asOpenMPI},
		{"Open MPI on gompi", []string{"-mpi-lib", "gompi", openMPI}, asOpenMPI},
		{"Open MPI, an RPATH", []string{held}, asOpenMPI},
		{"Open MPI, a script", []string{"sh", "-c", openMPI + " library; true"}, asOpenMPI},
		{"Open MPI, the user's folder", []string{"-x", "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu",
			openMPI}, asOpenMPI},
		{"MPICH", []string{mpich}, "MPICH Version:"},
		{"MPICH on its own", []string{"-mpi-lib", "own", mpich}, "MPICH Version:"},
		{"MPICH on gompi", []string{"-mpi-lib", "gompi", mpich}, asMPICH},
		{"MPICH on gompi, an RPATH", []string{"-mpi-lib", "gompi", heldMPICH}, asMPICH},
		{"MPICH on gompi, a script", []string{"-mpi-lib", "gompi", "sh", "-c", mpich + " library; true"}, asMPICH},
	} {
		args := slices.Concat([]string{"-q", "-oversubscribe", "-np", "4"}, tt.args, []string{"library"})
		status, out, errs := runCommand(t, gompirun, args...)
		areRanks(t, tt.what, 4, tt.library, status, out, errs)
	}
	status, out, errs := runCommand(t, gompirun, "-q", "-oversubscribe", "-mpi-lib", "gompi", "-np", "2", openMPI,
		"library", ":", "-np", "1", mpich, "library")
	if status != 0 || strings.Count(out, asOpenMPI) != 2 || strings.Count(out, asMPICH) != 1 ||
		strings.Count(out, " of 3: sum 3\n") != 3 {
		t.Errorf("both in one job: status %d\n%s%s", status, out, errs)
	}
	const refusal = "each of 2 would be rank 0 of 1; want no -mpi-lib own, or Open MPI's mpirun, as in: mpirun -np 2 "
	t.Setenv(env.MPILib, "own")
	if status, _, errs := runCommand(t, gompirun, "-q", "-oversubscribe", "-np", "2",
		openMPI); status != statusFailed || !strings.Contains(errs, refusal) {
		t.Errorf("Open MPI on its own: status %d, %q; want %d and %q", status, errs, statusFailed, refusal)
	}
	status, out, errs = runCommand(t, gompirun, "-q", "-oversubscribe", "-mpi-lib", "gompi", "-np", "2",
		openMPI, "library")
	areRanks(t, "a flag beside the variable", 2, asOpenMPI, status, out, errs)
}

// A process that has another MPI library, too, is refused.
func TestTwoMPILibrariesInAProcessAreRefused(t *testing.T) {
	gompirun, progs := withMPI(t, "mpicc.openmpi", "mpicc.mpich")
	libs, err := exec.Command("ldd", progs[1]).Output()
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`/\S*/libmpich\.so\S*`).FindString(string(libs))
	status, out, errs := runCommand(t, gompirun, "-q", "-oversubscribe", "-np", "2",
		"env", "LD_PRELOAD="+filepath.Join(filepath.Dir(gompirun), "lib/openmpi/libmpi.so.40")+":"+other, progs[0])
	if status != 1 || !strings.Contains(errs, "gompi: MPI_Init: this process has two MPI libraries, /") {
		t.Errorf("status %d, %q, %q; want 1, and that there are two libraries", status, out, errs)
	}
}

// Python's mpi4py asks for Open MPI's library when it is imported.
func TestMPI4PyRunsOnGompi(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import mpi4py").Run() != nil {
		t.Skip("left out: python3 has no mpi4py (package python3-mpi4py)")
	}
	gompirun, _ := withMPI(t, "mpicc.openmpi")
	const script = `from mpi4py import MPI
world = MPI.COMM_WORLD
print(f"rank {world.rank} of {world.size}: sum {world.allreduce(world.rank)}")
print(f"rank {world.rank} on {MPI.Get_library_version()}")`
	status, out, errs := runCommand(t, gompirun, "-q", "-oversubscribe", "-np", "3", python, "-c", script)
	areRanks(t, "mpi4py", 3, asOpenMPI, status, out, errs)
}

// Failures of an MPI program are reported like gompi's own, in MPI's terms.
func TestMPIProgramsOnGompiFailAsItsOwnDo(t *testing.T) {
	gompirun, progs := withMPI(t, "mpicc.openmpi", "mpicc.mpich")
	for _, prog := range progs {
		for _, tt := range []struct {
			what   string
			status int
			want   []string
		}{
			{"abort", 7, []string{"gompirun: rank 1 on localhost aborted the job with status 7: MPI_Abort(MPI_COMM_WORLD, 7)\n"}},
			{"exit", 1, []string{"gompirun: rank 1 on localhost ended with status 0 without calling MPI_Finalize (pid "}},
			{"kill", 137, []string{"gompirun: rank 1 on localhost was killed by signal 9 (SIGKILL)"}},
			{"mismatch", 16, []string{"gompi: MPI_Allreduce on MPI_COMM_WORLD: MPI_ERR_OTHER: rank 1: collective 2: ",
				"rank 1 called MPI_Allreduce(1 MPI_INT, MPI_SUM)", " called MPI_Allreduce(1 MPI_DOUBLE, MPI_SUM)"}},
			{"differ", 16, []string{"rank 1 called MPI_Bcast(4 bytes, root 0)", " called MPI_Barrier()"}},
			{"finalize", 16, []string{"rank 1 called MPI_Finalize()", " called MPI_Barrier()"}},
			{"returned", 1, []string{" ended with status 0 although MPI_Finalize had failed (pid ",
				"): MPI_ERR_OTHER: rank ",
				"rank 1 called MPI_Finalize()", " called MPI_Barrier()", "gompirun: then: rank "}},
			{"truncate", 15, []string{"gompirun: rank 0 on localhost aborted the job with status 15: MPI_Recv on MPI_COMM_WORLD: MPI_ERR_TRUNCATE: " +
				"rank 0: peer 1 (host localhost): message longer than the buffer: 8 bytes for a buffer of 4\n"}},
		} {
			status, out, errs := runCommand(t, gompirun, "-q", "-oversubscribe", "-mpi-lib", "gompi", "-np", "3", prog,
				tt.what, "1")
			lacks := func(want string) bool { return !strings.Contains(errs, want) }
			if status != tt.status || slices.ContainsFunc(tt.want, lacks) ||
				tt.what == "abort" && strings.Contains(errs, "then: rank 1 ") {
				t.Errorf("%s %s: status %d, want %d; %q lacks one of %q\n%s", prog, tt.what, status, tt.status, errs,
					tt.want, out)
			}
		}
	}
}

// The report of ranks that wait has the functions of MPI that they are in.
func TestMPIProgramsThatHangAreReported(t *testing.T) {
	t.Parallel() // it waits most of the time
	gompirun, progs := withMPI(t, "mpicc.openmpi", "mpicc.mpich")
	for _, prog := range progs {
		status, out, errs := runCommand(t, gompirun, "-oversubscribe", "-mpi-lib", "gompi", "-stall-warning", "0",
			"-timeout", "15", "-np", "6", prog, "hang")
		for _, want := range []string{
			"MPI_Iallreduce(1 MPI_DOUBLE, MPI_MAX) number 4 on MPI_COMM_WORLD: arrived: rank 0; missing: rank 1-5\n",
			"rank 0 is in MPI_Iallreduce(1 MPI_DOUBLE, MPI_MAX) number 4 on MPI_COMM_WORLD at MPI_Waitall for ",
			"rank 1 is in MPI_Recv(4 bytes from rank 0, tag 4) on MPI_COMM_WORLD for ",
			"rank 2 is in MPI_Irecv(4 bytes from any rank, any tag) on MPI_COMM_WORLD at MPI_Wait for ",
			"rank 3 is in MPI_Sendrecv(4 bytes from rank 2 of MPI_COMM_WORLD, tag 7) on MPI_COMM_WORLD/dup (6 ranks) for ",
			"rank 4 is in MPI_Allreduce_init(1 MPI_DOUBLE, MPI_MAX) number 1 on ocean at MPI_Wait for ",
			"rank 5 is in MPI_Barrier() number 2 on ocean for ",
			"time limit of 15s reached",
		} {
			if !strings.Contains(errs, want) {
				t.Errorf("%s: %q lacks %q", prog, errs, want)
			}
		}
		if status != 124 {
			t.Errorf("%s: status %d, want 124\n%s", prog, status, out)
		}
	}
}

// Hosts with gompirun and its MPI libraries at the same path run MPI programs as one job, which go
// through sshd and TCP.
func TestMPIProgramsRunOnGompiAcrossHosts(t *testing.T) {
	gompirun, progs := withMPI(t, "mpicc.openmpi", "mpicc.mpich")
	b := testbed.New(t, 2)
	for i, library := range []string{asOpenMPI, asMPICH} {
		status, out, errs := runCommand(t, gompirun, "-q", "-rsh", b.RSH(), "-H", "host1:2,host2:2", "-mpi-lib",
			"gompi", progs[i], "library")
		areRanks(t, "two hosts", 4, library, status, out, errs)
	}
	status, out, _ := runCommand(t, gompirun, "doctor", "-rsh", b.RSH(), "-H", "host1,host2")
	if strings.Count(out, " Open MPI, MPICH, MPI 5\n") != 2 || status != 0 {
		t.Errorf("doctor: status %d, want all libraries on both hosts\n%s", status, out)
	}
}

// Hosts that share no folder with the launcher are sent the MPI libraries for programs that are
// known to want them, once; else a program that wants them is refused by the host's name.
func TestHostsAreSentMPILibraries(t *testing.T) {
	built, progs := withMPI(t, "mpicc.openmpi")
	private, cache := t.TempDir(), t.TempDir()
	b := testbed.Make(t, testbed.Config{Hosts: 2, Private: []string{private, cache}, SSHD: func(int) string {
		return "SetEnv XDG_CACHE_HOME=" + cache
	}})
	gompirun := filepath.Join(private, "gompirun")
	copyProgram(t, built, gompirun)
	if err := os.CopyFS(filepath.Join(private, "lib"),
		os.DirFS(filepath.Join(filepath.Dir(built), "lib"))); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (int, string, string) {
		return runCommand(t, gompirun, append([]string{"-q", "-rsh", b.RSH(), "-H", "host1:2,host2:2"}, args...)...)
	}
	const cached = "ls -i $XDG_CACHE_HOME/gompi-*/*/openmpi/libmpi.so.40"
	var inodes []string
	for range 2 {
		status, out, errs := run(progs[0], "library")
		areRanks(t, "a program of Open MPI", 4, asOpenMPI, status, out, errs)
		_, out, _ = run("-npernode", "1", "sh", "-c", "XDG_CACHE_HOME="+cache+"; "+cached)
		inodes = append(inodes, sorted(out))
	}
	if strings.Count(inodes[0], "libmpi.so.40") != 2 || inodes[0] != inodes[1] {
		t.Errorf("cached:\n%s\nand then:\n%s", inodes[0], inodes[1])
	}
	if err := os.RemoveAll(filepath.Join(private, "lib")); err != nil {
		t.Fatal(err)
	}
	status, _, errs := run(progs[0])
	if want := `rank \d on host\d: ".*" is linked with Open MPI \(libmpi.so.40\), .* want gompi's library beside this gompirun`; status != statusFailed || !regexp.MustCompile(want).MatchString(errs) {
		t.Errorf("without libraries: status %d, %q; want %d and %s", status, errs, statusFailed, want)
	}
}
