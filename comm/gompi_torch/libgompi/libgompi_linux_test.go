package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/internal/version"
)

// testLimit bounds every program that is tested: one that hangs has failed.
const testLimit = time.Minute

// testVersion is the version that the library reports here.
const testVersion = version.Number + ", commit v-test"

// A kit has the library and the launcher of C programs.
type kit struct{ lib, gompirun string }

var scratch string // for all tests

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "libgompi")
	if err != nil {
		panic(err)
	}
	scratch = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

var build = sync.OnceValues(func() (kit, error) {
	k := kit{filepath.Join(scratch, "lib"), filepath.Join(scratch, "gompirun")}
	if out, err := exec.Command("make", "-s", "-C", "../../..", "libgompi", "BIN="+scratch,
		"VERSION=v-test").CombinedOutput(); err != nil {
		return k, fmt.Errorf("make libgompi: %w\n%s", err, out)
	}
	if out, err := exec.Command("go", "build", "-o", k.gompirun, "../../../mpirun/gompirun").CombinedOutput(); err != nil {
		return k, fmt.Errorf("gompirun: %w\n%s", err, out)
	}
	return k, nil
})

func start(t *testing.T) kit {
	t.Helper()
	stress.Slow(t, "it builds the library")
	if os.Getenv("CGO_ENABLED") == "0" {
		t.Skip("CGO_ENABLED=0")
	}
	for _, tool := range []string{"gcc", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	t.Parallel()
	k, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// program builds a C program.
func (k kit) program(t *testing.T, source string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), ".c"))
	cmd := exec.Command("gcc", "-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread",
		`-DWANT_VERSION="`+testVersion+`"`,
		"-I"+k.lib, source, "-o", out, "-L"+k.lib, "-Wl,--as-needed", "-lgompi", "-ldl", "-Wl,-rpath,"+k.lib)
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, printed)
	}
	return out
}

func (k kit) command(t *testing.T, np int, args ...string) *exec.Cmd {
	return command(t, append([]string{k.gompirun, "-np", fmt.Sprint(np), "-oversubscribe"}, args...)...)
}

func command(t *testing.T, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	return cmd
}

// printed runs cmd and returns its output and exit status.
func printed(cmd *exec.Cmd) (string, int) {
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// allDone fails unless cmd ends well, and each rank has said that it is done.
func allDone(t *testing.T, np int, cmd *exec.Cmd) {
	t.Helper()
	out, status := printed(cmd)
	for r := range np {
		if want := fmt.Sprintf("rank %d of %d done\n", r, np); !strings.Contains(out, want) {
			t.Errorf("%d ranks: no %q", np, want)
		}
	}
	if status != 0 || t.Failed() {
		t.Fatalf("%d ranks: status %d: %s", np, status, out)
	}
}

func TestFunctionsOfTheHeader(t *testing.T) {
	k := start(t)
	for _, name := range []string{"collectives", "messages", "errors", "threads"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prog := k.program(t, "testdata/"+name+".c")
			for _, np := range []int{1, 2, 4} {
				allDone(t, np, k.command(t, np, prog))
			}
		})
	}
}

// Handlers run on stacks of their own, however they were set, and on the program's threads.
func TestHandlersOfTheProgramRunBesideGo(t *testing.T) {
	k := start(t)
	allDone(t, 1, k.command(t, 1, k.program(t, "testdata/handlers.c")))
}

func TestFunctionsOfTheHeaderOverTCP(t *testing.T) {
	k := start(t)
	for _, name := range []string{"collectives", "messages"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allDone(t, 4, k.command(t, 4, "-x", "GOMPI_TRANSPORT=tcp", k.program(t, "testdata/"+name+".c")))
		})
	}
}

func TestFunctionsOfTheHeaderOnTwoHosts(t *testing.T) {
	k := start(t)
	for _, name := range []string{"collectives", "errors", "threads"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allDone(t, 4, k.command(t, 4, "-H", "localhost:2,127.0.0.2:2", k.program(t, "testdata/"+name+".c")))
		})
	}
}

func TestMemoryOfOneRankIsGivenBack(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/freed.c")
	for _, c := range stress.Some(t, 1, []struct {
		np        int
		transport string
	}{{1, ""}, {2, ""}, {2, "tcp"}}) {
		allDone(t, c.np, k.command(t, c.np, "-x", "GOMPI_TRANSPORT="+c.transport, prog))
	}
}

func TestProgramsNeedNoLauncher(t *testing.T) {
	k := start(t)
	allDone(t, 1, command(t, k.program(t, "testdata/messages.c")))
}

func TestVariablesThatAreSetLaterCount(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/environment.c")
	allDone(t, 2, k.command(t, 2, prog, "late"))
}

func TestARankWhoseVariablesAreGoneGetsAnErrorThatSaysSo(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/environment.c")
	if out, _ := printed(k.command(t, 2, prog, "gone")); strings.Count(out, "refused\n") != 2 {
		t.Errorf("want both ranks refused: %s", out)
	}
	if out, _ := printed(k.command(t, 2, prog, "alone")); strings.Count(out, "rank 0 of 1 done\n") != 2 {
		t.Errorf("want two jobs of one rank: %s", out)
	}
}

func TestARankThatDoesNotComeIsNamed(t *testing.T) {
	k := start(t)
	out, status := printed(k.command(t, 3, "-timeout", "5", k.program(t, "testdata/absent.c")))
	if status != 124 || !strings.Contains(out, "rank 0 names it\n") || !strings.Contains(out, "rank 2 names it\n") {
		t.Errorf("status %d, want 124 and ranks 0 and 2 to name rank 1: %s", status, out)
	}
}

func TestAChildMayBeTheRank(t *testing.T) {
	k := start(t)
	allDone(t, 2, k.command(t, 2, k.program(t, "testdata/fork.c"), "before"))
}

func TestChildrenOfRanksAreRefused(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/fork.c")
	for _, transport := range []string{"", "tcp"} {
		allDone(t, 3, k.command(t, 3, "-x", "GOMPI_TRANSPORT="+transport, prog, "after"))
	}
}

// unled starts ranks without an agent, as another launcher would. Their input ends with the test.
func (k kit) unled(t *testing.T, np int, transport string, args ...string) []*exec.Cmd {
	t.Helper()
	dir, ranks := t.TempDir(), make([]*exec.Cmd, np)
	hold, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		release.Close()
		hold.Close()
	})
	for r := range ranks {
		cmd := command(t, args...)
		cmd.Stdin = hold
		cmd.Env = append(os.Environ(), fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d", r),
			fmt.Sprintf("OMPI_COMM_WORLD_SIZE=%d", np),
			fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_SIZE=%d", np), "GOMPI_RDZV=file://"+dir, "GOMPI_TRANSPORT="+transport)
		ranks[r] = cmd
	}
	return ranks
}

// A child of a dead rank, which lives on, must not keep the connections of that rank open.
func TestPeersNoticeADeathAlthoughAChildLives(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/fork.c")
	for _, transport := range []string{"", "tcp"} {
		for dies := range 3 {
			t.Run(fmt.Sprintf("rank %d, transport %q", dies, transport), func(t *testing.T) {
				ranks := k.unled(t, 3, transport, prog, "lives", fmt.Sprint(dies))
				out := make([]bytes.Buffer, len(ranks))
				for r, cmd := range ranks {
					if r != dies { // its child would keep the pipe open
						cmd.Stdout, cmd.Stderr = &out[r], &out[r]
					}
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
				}
				for r, cmd := range ranks {
					err := cmd.Wait()
					if want := fmt.Sprintf("rank %d heard\n", r); r != dies &&
						(err != nil || !strings.Contains(out[r].String(), want)) {
						t.Errorf("rank %d: %v: want %q: %s", r, err, want, &out[r])
					}
				}
				if s, ok := ranks[dies].ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
					t.Errorf("rank %d ended with %v: want it killed", dies, ranks[dies].ProcessState)
				}
			})
		}
	}
}

func TestRanksThatEndTooEarlyAreNamed(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/death.c")
	end := func(how string) (string, int) { // no rank is killed that has yet to be notified
		return printed(k.command(t, 3, "-kill-delay", "1m", prog, how))
	}
	for how, want := range map[string]string{
		"exit":   "rank 1 on localhost ended with status 0 without closing its communicators",
		"return": "rank 1 on localhost ended with status 0 without closing its communicators",
		"kill":   "rank 1 on localhost was killed",
	} {
		out, status := end(how)
		if status == 0 || !strings.Contains(out, want) || !strings.Contains(out, "rank 0 heard\n") ||
			!strings.Contains(out, "rank 2 heard\n") {
			t.Errorf("%s: status %d: want %q, and ranks 0 and 2 to hear of it: %s", how, status, want, out)
		}
	}
	if out, status := end("abort"); status != 7 || !strings.Contains(out, "no more work") {
		t.Errorf("abort: status %d, want 7 and the reason: %s", status, out)
	}
}

// interrupted starts cmd, sends SIGINT to the process that prints its number, and returns all that
// cmd prints, and its status.
func interrupted(t *testing.T, cmd *exec.Cmd) (string, *os.ProcessState) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	in := bufio.NewReader(r)
	for pid := 0; pid == 0; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended before it waited: %q", line)
		}
		if n, _ := fmt.Sscanf(line, "pid %d", &pid); n == 1 {
			syscall.Kill(pid, syscall.SIGINT)
		}
	}
	rest, _ := io.ReadAll(in)
	cmd.Wait()
	return string(rest), cmd.ProcessState
}

func TestInterruptsEndARankThatWaits(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/signal.c")
	for _, tt := range []struct{ want, arg string }{
		{"rank 1 on localhost was killed by signal 2", ""},
		{"rank 1 on localhost exited with status 42", "handle"},
	} {
		args := []string{prog}
		if tt.arg != "" {
			args = append(args, tt.arg)
		}
		if out, _ := interrupted(t, k.command(t, 2, args...)); !strings.Contains(out, tt.want) {
			t.Errorf("%q: want %q: %s", tt.arg, tt.want, out)
		}
	}
}

func TestInterruptsReachPython(t *testing.T) {
	k := start(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3")
	}
	out, state := interrupted(t, command(t, "python3", "testdata/interrupt.py", filepath.Join(k.lib, "libgompi.so")))
	if !state.Success() || !strings.Contains(out, "interrupted\n") {
		t.Errorf("%v: want it interrupted: %s", state, out)
	}
}

func TestTheLibraryStaysWhenItIsClosed(t *testing.T) {
	k := start(t)
	if out, status := printed(command(t, k.program(t, "testdata/reopen.c"),
		filepath.Join(k.lib, "libgompi.so"))); status != 0 {
		t.Error(out)
	}
}

func TestTheMonitorSleepsLonger(t *testing.T) {
	k := start(t)
	core := filepath.Join(k.lib, "libgompi-core.so")
	if out, status := printed(command(t, k.program(t, "../../../internal/guest/testdata/monitor.c"), core,
		"gompi_core_version")); status != 0 {
		t.Error(out)
	}
}

// another builds a library in Go that has nothing to do with gompi.
func another(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module another\n",
		"main.go": "package main\n\nimport \"C\"\n\n//export another\nfunc another() {}\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", "libanother.so") // takes its time beside ranks
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=-mod=mod -trimpath")
	if out, status := printed(cmd); status != 0 {
		t.Fatal(out)
	}
	return filepath.Join(dir, "libanother.so")
}

func TestASecondGoIsRefused(t *testing.T) {
	k := start(t)
	other := another(t)
	out, status := printed(command(t, k.program(t, "testdata/library.c"), other))
	if want := other + " is written in Go, too"; status != 0 || !strings.Contains(out, want) {
		t.Errorf("status %d: want %q: %s", status, want, out)
	}
}

func TestTheOtherHalfMustBeThereAndFit(t *testing.T) {
	k := start(t)
	prog := k.program(t, "testdata/library.c")
	dir := t.TempDir()
	copyTo := func(from, name string) {
		b, err := os.ReadFile(filepath.Join(k.lib, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(want string) {
		t.Helper()
		cmd := command(t, prog)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "LD_PRELOAD="+filepath.Join(dir, "libgompi.so"))
		if out, status := printed(cmd); status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d: want %q: %s", status, want, out)
		}
	}
	copyTo("libgompi.so", "libgompi.so")
	refused(filepath.Join(dir, "libgompi-core.so") + ": cannot open shared object file")
	copyTo("libgompi.so", "libgompi-core.so")
	refused("is not of gompi")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-DGOMPI_VERSION=\"v-other\"", "-o",
		filepath.Join(dir, "libgompi.so"), "shim/gompi.c", "shim/load.c", "../../../internal/guest/shim/signals.c",
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	os.Remove(filepath.Join(dir, "libgompi-core.so"))
	copyTo("libgompi-core.so", "libgompi-core.so")
	refused("is of version " + testVersion + ": want v-other")
}
