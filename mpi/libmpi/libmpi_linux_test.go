package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/stress"
)

// testLimit bounds every program that is tested: one that hangs has failed. Stress tests may take
// longer by what they are asked for.
const testLimit = time.Minute

var scratch string // for all tests

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "libmpi")
	if err != nil {
		panic(err)
	}
	scratch = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// build makes gompirun and the libraries beside it, and returns its path; where MPI_BUILT in the
// environment names a folder, they are there, as .ci/test has made them once for all.
var build = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("MPI_BUILT"); dir != "" {
		return filepath.Join(dir, "gompirun"), nil
	}
	gompirun := filepath.Join(scratch, "gompirun")
	if out, err := exec.Command("make", "-s", "-C", "../..", "libmpi", "BIN="+scratch,
		"VERSION=v-test").CombinedOutput(); err != nil {
		return "", fmt.Errorf("make libmpi: %w\n%s", err, out)
	}
	if out, err := exec.Command("go", "build", "-o", gompirun, "../../mpirun/gompirun").CombinedOutput(); err != nil {
		return "", fmt.Errorf("gompirun: %w\n%s", err, out)
	}
	return gompirun, nil
})

// needC skips a test where the libraries cannot be built, and short runs where they are not yet.
func needC(t *testing.T) {
	t.Helper()
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("the libraries have C in them: CGO_ENABLED=1 go test ./mpi/libmpi")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	if os.Getenv("MPI_BUILT") == "" {
		stress.Long(t, "it builds the libraries")
	}
}

// faces are what programs in C are built for, by mpicc.NAME, and for the standard's own interface,
// abi, by our gompicc, which is always there.
var faces = []string{"openmpi", "mpich", "abi"}

// Programs that are built with each of Debian's MPI libraries run on gompi's: those in Fortran and
// C++ through Debian's own libraries for these languages. They check themselves.
func TestProgramsInOtherLanguages(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, []string{"openmpi", "mpich"}) {
		for _, p := range []struct{ source, wrapper string }{
			{"mpif.f", "mpifort."}, {"module.f90", "mpifort."}, {"f08.f90", "mpifort."},
			{"bindings.cc", "mpicxx."}, {"throws.cc", "mpicxx."},
		} {
			t.Run(face+"/"+p.source, func(t *testing.T) {
				program := compiled(t, p.wrapper+face, p.source)
				runRanks(t, 3, program, p.source, filepath.Join(t.TempDir(), "data"))
			})
		}
	}
}

// Programs in C that check themselves what others have shown to be needed.
func TestProgramsInC(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		for _, source := range []string{"signals.c", "edges.c", "newer.c", "predefined.c"} {
			t.Run(face+"/"+source, func(t *testing.T) {
				runProgram(t, compiled(t, "mpicc."+face, source), source)
			})
		}
	}
}

// Functions of the program get the objects that a call names, and run on its threads.
func TestFunctionsOfPrograms(t *testing.T) {
	onBothPaths(t, "functions.c", func(t *testing.T, program string) {
		runRanks(t, 3, program, "functions.c")
		runRanks(t, 3, program, "functions.c", "single")
	})
}

// MPI says which program of the job a rank runs, and that clocks of several hosts are not one.
func TestWhatMPISaysOfTheJob(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, "predefined.c")
		t.Run(face+"/programs", func(t *testing.T) {
			runRanks(t, 2, program, "predefined.c", "0", ":", "-np", "1", program, "1")
		})
		t.Run(face+"/clocks", func(t *testing.T) {
			other := []string{"unshare", "--time", "--monotonic", "1000"}
			if err := exec.Command(other[0], append(other[1:], "true")...).Run(); err != nil {
				t.Skipf("needs a time namespace: %v", err)
			}
			runRanks(t, 1, program, "predefined.c",
				append(append([]string{"0", "0", ":", "-np", "1"}, other...), program, "1", "0")...)
		})
	}
}

// mpi4py's MPIPoolExecutor ends with the command to type, and does not wait for workers that nobody
// starts.
func TestAPoolOfSpawnedWorkersIsRefused(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		t.Run(face, func(t *testing.T) {
			program := compiled(t, "mpicc."+face, "spawn.c")
			runRanks(t, 1, program, "spawn.c")
			out, err := run(t, 1, program, "pool")
			if err == nil || !strings.Contains(out, "gompirun -np N python3 -m mpi4py.futures SCRIPT") ||
				!strings.Contains(out, "exited with status 1") {
				t.Errorf("pool: %v\n%s\nwant status 1, and what to type", err, out)
			}
		})
	}
}

// The variables of the tools' interface count calls exactly, whoever does them, with -stats and
// without.
func TestToolsSeeWhatCallsCount(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, "pvars.c")
		for _, how := range []string{"GOMPI_SHORT=on", "GOMPI_SHORT=off", "GOMPI_TRANSPORT=tcp"} {
			t.Run(face+"/"+how, func(t *testing.T) { runRanks(t, 2, "-x", "pvars.c", how, program) })
		}
		t.Run(face+"/stats", func(t *testing.T) {
			runRanks(t, 3, "-stats="+filepath.Join(t.TempDir(), "stats.json"), "pvars.c", program, "counted")
		})
	}
}

// Windows through shared memory, and served.
func TestWindowsInC(t *testing.T) {
	onBothPaths(t, "windows.c", func(t *testing.T, program string) {
		runProgram(t, program, "windows.c")
		runRanks(t, 3, "-recover", "windows.c", program, "kill")
	})
}

// What ranks see of each other's operations on windows, done by C, by Go, and by both, through
// memory and served.
func TestStressWindowsInC(t *testing.T) {
	needC(t)
	for i, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, "litmus.c")
		for _, short := range []string{"on", "mix", "off"} {
			t.Run(face+"/"+short, func(t *testing.T) {
				t.Setenv("GOMPI_SHORT", short)
				runRanks(t, 3, program, "litmus.c", seconds(stress.Until(t)), "shared")
			})
		}
		if i == 0 {
			t.Run("tcp", func(t *testing.T) {
				t.Setenv("GOMPI_TRANSPORT", "tcp")
				runRanks(t, 3, program, "litmus.c", seconds(stress.Until(t)))
			})
		}
	}
}

// seconds returns how long it is until then.
func seconds(then time.Time) string { return fmt.Sprint(time.Until(then).Seconds()) }

// A communicator can be revoked, shrunk and agreed on, and under gompirun -recover ranks that live
// go on without those that were killed.
func TestFailuresInC(t *testing.T) {
	onBothPaths(t, "failures.c", func(t *testing.T, program string) {
		runRanks(t, 4, program, "failures.c")
		runRanks(t, 4, "-recover", "failures.c", program, "kill", filepath.Join(t.TempDir(), "data"))
	})
}

// A program may open sessions and not call MPI_Init, or both, in any order. It leaves the job when
// all is over, at its end if it has not called MPI_Init.
func TestSessions(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, "sessions.c")
		t.Run(face, func(t *testing.T) { runRanks(t, 3, program, "sessions.c") })
		t.Run(face+"/init", func(t *testing.T) { runRanks(t, 3, program, "sessions.c", "init") })
		for how, want := range map[string]string{
			"world": "MPI_Barrier: MPI_ERR_COMM: the communicator is not valid",
			"open":  "ended with status 0 without calling MPI_Finalize",
		} {
			t.Run(face+"/"+how, func(t *testing.T) {
				if out, err := run(t, 3, program, how); err == nil || !strings.Contains(out, want) {
					t.Errorf("%v\n%s\nwant %q", err, out, want)
				}
			})
		}
	}
}

// Files are written and read by one rank to four.
func TestFilesInC(t *testing.T) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, "files.c")
		for ranks := 1; ranks <= 4; ranks++ {
			t.Run(fmt.Sprintf("%s/%d", face, ranks), func(t *testing.T) {
				dir := t.TempDir()
				runRanks(t, ranks, program, "files.c", filepath.Join(dir, "data"))
				if left, err := os.ReadDir(dir); err != nil || len(left) > 1 { // one that was not closed
					t.Errorf("%v, and files are left behind: %v", err, left)
				}
			})
		}
	}
}

// Valgrind finds nothing in programs that are correct, with the file that is installed for it, and
// still finds what is wrong in a program.
func TestValgrindFindsNothingOfGompi(t *testing.T) {
	needC(t)
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		t.Skip("needs valgrind")
	}
	checked := []string{"-q", "--error-exitcode=9", "--suppressions=valgrind.supp"}
	correct, wrong := compiled(t, "mpicc.abi", "predefined.c"), compiled(t, "mpicc.abi", "uninitialized.c")
	for _, transport := range stress.Some(t, 1, []string{"", "tcp"}) {
		t.Run("correct/"+transport, func(t *testing.T) {
			t.Setenv("GOMPI_TRANSPORT", transport)
			runRanks(t, 2, valgrind, "predefined.c", append(checked, correct)...)
		})
	}
	t.Run("wrong", func(t *testing.T) {
		out, err := run(t, 1, valgrind, append(checked, wrong)...)
		if err == nil || !strings.Contains(out, "uninitialised value") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestTheMonitorSleepsLonger(t *testing.T) {
	needC(t)
	program := compiled(t, "mpicc.openmpi", "../../../internal/guest/testdata/monitor.c")
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	core := filepath.Join(filepath.Dir(gompirun), "lib/libgompi-mpi.so")
	if out, err := exec.Command(program, core, "gompi_mpi_running").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// onBothPaths tests a program with messages through shared memory, and over TCP.
func onBothPaths(t *testing.T, source string, test func(t *testing.T, program string)) {
	inEach(t, source, "GOMPI_TRANSPORT", []string{"", "tcp"}, test)
}

// inEach tests a program, built for each face, with each value of an environment variable.
func inEach(t *testing.T, source, variable string, values []string, test func(t *testing.T, program string)) {
	needC(t)
	for _, face := range stress.Some(t, 1, faces) {
		program := compiled(t, "mpicc."+face, source)
		for _, value := range values {
			t.Run(face+"/"+value, func(t *testing.T) {
				t.Setenv(variable, value)
				test(t, program)
			})
		}
	}
}

// compiled builds a program of testdata.
func compiled(t *testing.T, wrapper, source string) string {
	t.Helper()
	if wrapper == "mpicc.abi" {
		gompirun, err := build()
		if err != nil {
			t.Fatal(err)
		}
		wrapper = filepath.Join(filepath.Dir(gompirun), "gompicc")
	}
	language := map[string]string{"mpicc": "gcc", "gompicc": "cc", "mpifort": "gfortran",
		"mpicxx": "g++"}[strings.TrimSuffix(filepath.Base(wrapper), filepath.Ext(wrapper))]
	for _, tool := range []string{wrapper, language, "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	args := []string{"-w", "-o", out, "testdata/" + source, "-lm"}
	if language == "gfortran" {
		// mpif.h has no prototypes; modules go beside the program
		args = append(args, "-fallow-argument-mismatch", "-J", filepath.Dir(out))
	}
	if printed, err := exec.Command(wrapper, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", wrapper, source, err, printed)
	}
	return out
}

// Short messages go by C, by Go, or by both in turn, and arrive whole and in order whichever it is.
func TestShortMessagesWithoutEnteringGo(t *testing.T) { testShort(t, "short.c", 60, 40) }

// Short collectives are done by C, by Go, or by both in turn, beside each other.
func TestShortCollectivesWithoutEnteringGo(t *testing.T) { testShort(t, "collectives.c", 1500, 1000) }

// testShort runs a program whose arguments are a seed and how many steps it makes: so many for two
// ranks and for three.
func testShort(t *testing.T, source string, ofTwo, ofThree int) {
	inEach(t, source, "GOMPI_SHORT", []string{"off", "on", "mix"}, func(t *testing.T, program string) {
		runRanks(t, 2, program, source, fmt.Sprint(seed), fmt.Sprint(ofTwo))
		runRanks(t, 3, program, source, fmt.Sprint(seed), fmt.Sprint(ofThree))
	})
}

// A handler may call MPI in a thread whose short receive its signal has interrupted.
func TestASignalInterruptsAShortReceive(t *testing.T) {
	needC(t)
	program := compiled(t, "mpicc.openmpi", "interrupted.c")
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, gompirun, "-np", "2", "-oversubscribe", program)
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the job ended with %v, want status 7:\n%s", cmd.ProcessState, out)
	}
}

// seed is another one each day.
var seed = time.Now().Unix() / 86400 % 10000

func runProgram(t *testing.T, program, source string) {
	t.Helper()
	runRanks(t, 3, program, source)
}

func runRanks(t *testing.T, ranks int, program, source string, args ...string) {
	t.Helper()
	out, err := run(t, ranks, program, args...)
	want := strings.TrimSuffix(source, filepath.Ext(source)) + ": no errors\n"
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("%s: %v\n%s\nwant %q", source, err, out, want)
	}
}

// run runs a program on gompi's library, and returns what it and gompirun print.
func run(t *testing.T, ranks int, program string, args ...string) (string, error) {
	t.Helper()
	gompirun, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), stress.Until(t).Add(testLimit))
	defer cancel()
	command := append([]string{"-mpi-lib", "gompi", "-np", fmt.Sprint(ranks), "-oversubscribe", program}, args...)
	out, err := exec.CommandContext(ctx, gompirun, command...).CombinedOutput()
	return string(out), err
}
