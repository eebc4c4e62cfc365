//go:build linux

package mpirun

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/testbed"
)

// A debugger is a real debugger, with the input typed and the output required for a rank that
// waits in main.await.
type debugger struct {
	name   string
	flag   string // the value of -debugger, but for the path
	from   string // where to get it
	typed  string
	output []string // PID stands for the rank's process
}

var debuggers = []debugger{
	{"gdb", "%s -nx -iex 'set pagination off' -p", "package gdb", "bt\ninfo functions main.await\ndetach\nquit\n",
		[]string{`#0 +(0x\w+ in )?(internal/)?runtime[./]`, `void main\.await\(void\);`,
			`\[Inferior 1 \(process PID\) detached\]`}},
	{"dlv", "%s attach", "go install github.com/go-delve/delve/cmd/dlv@latest", "goroutine 1 bt\nexit\nn\n",
		[]string{`main\.await`, `waiter/main\.go:\d+`}},
}

// TestDebuggersLookIntoRanksAndLetThemGo attaches each debugger, on a terminal,
// to a rank on this machine and to one on another host. The job must continue.
func TestDebuggersLookIntoRanksAndLetThemGo(t *testing.T) {
	stress.Long(t, "it builds a program with its symbols")
	waiter := filepath.Join(t.TempDir(), "waiter")
	if out, err := exec.Command("go", "build", "-o", waiter, "./testdata/waiter").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	for _, d := range debuggers {
		t.Run(d.name, func(t *testing.T) {
			path, err := exec.LookPath(d.name)
			if err != nil {
				t.Skipf("no %s here (%s)", d.name, d.from)
			}
			d.flag = fmt.Sprintf(d.flag, path)
			t.Run("here", func(t *testing.T) { d.attach(t, "-np", "2", waiter) })
			t.Run("on another host", func(t *testing.T) {
				bed := testbed.New(t, 1)
				d.attach(t, "-rsh", bed.RSH(), "-H", "host1:2", waiter)
			})
		})
	}
}

// attach runs a job, and d on its rank 1.
func (d *debugger) attach(t *testing.T, job ...string) {
	k := startTalk(t, job...)
	_, pid, _ := strings.Cut(k.expect("rank 1 is process "), " process ")
	id := jobOf(t, k.cmd.Process.Pid)
	out, status := onTerminal(t, d.typed, "gompirun", "attach", "-job", id, "1", "-debugger", d.flag)
	if strings.Contains(strings.ToLower(out), "operation not permitted") {
		t.Skipf("processes may not be debugged here: %s", out)
	}
	for _, want := range append(d.output, "gompirun: rank 1 is process PID on ") {
		if !regexp.MustCompile(strings.ReplaceAll(want, "PID", pid)).MatchString(out) {
			t.Errorf("nothing like %q for process %s in\n%s", want, pid, out)
		}
	}
	if status != 0 {
		t.Errorf("status %d, want 0\n%s", status, out)
	}
	k.cmd.Process.Signal(syscall.SIGUSR1)
	for range k.lines { // to the end
	}
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("the job after it was looked at: %v", err)
	}
}

// onTerminal runs a command on a terminal of its own, types into it, and returns its output and
// exit status.
func onTerminal(t *testing.T, typed string, argv ...string) (string, int) {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("no script here (package bsdutils)")
	}
	for i, arg := range argv {
		argv[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	cmd := exec.Command(script, "-qec", strings.Join(argv, " "), "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=dumb", "DEBUGINFOD_URLS=")
	stdin, err := cmd.StdinPipe() // open to the end: script would hang up
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*soon, func() { cmd.Process.Kill() })
	defer late.Stop()
	go io.WriteString(stdin, typed)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
