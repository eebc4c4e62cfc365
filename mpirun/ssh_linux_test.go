package mpirun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/testbed"
)

// remotely runs gompirun on the hosts of b and returns its exit status, what it
// wrote, and on stderr the lines.
func remotely(t *testing.T, b *testbed.Bed, args ...string) (int, string, []string) {
	t.Helper()
	cmd := exec.Command("gompirun", append([]string{"-rsh", b.RSH()}, args...)...)
	return finish(t, cmd)
}

// finish runs cmd, but not for ever.
func finish(t *testing.T, cmd *exec.Cmd) (int, string, []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Signal(syscall.SIGQUIT) }).Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), strings.Split(strings.TrimSpace(stderr.String()), "\n")
}

// matches fails the test unless each pattern matches one of lines.
func matches(t *testing.T, what string, lines []string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !slices.ContainsFunc(lines, regexp.MustCompile(p).MatchString) {
			t.Errorf("%s: want a line that matches %q in\n%s", what, p, strings.Join(lines, "\n"))
		}
	}
}

func TestRanksOfSeveralHostsMeet(t *testing.T) {
	b := testbed.New(t, 4)
	status, out, said := remotely(t, b, "-q", "-H", "host1:2,host2:2,host3:2,host4:2", "rank", "meet", "goodbye")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 8 {
		t.Fatalf("status %d, %d lines:\n%s\n%s", status, len(lines), out, strings.Join(said, "\n"))
	}
	for r := range 8 {
		matches(t, "meet", lines, fmt.Sprintf(`^rank %d of 8, local %d of 2, node %d of 4 on host%d, cards \[0 1 4 9 16 25 36 49\]$`, r, r%2, r/2, r/2+1))
	}
	// They also move data; loop does 200 allreduces and then has rank 1 fail.
	status, out, said = remotely(t, b, "-q", "-H", "host1:2,host2:2,host3:2,host4:2", "loop", "now")
	if status != 7 || strings.Count(out, "ready") != 8 {
		t.Errorf("loop: status %d, want 7, and 8 ranks that are ready:\n%s", status, out)
	}
	matches(t, "loop", said, `^gompirun: rank 1 on host1 exited with status 7 `)
	b.AwaitEmpty(10 * time.Second)
}

// Whatever keeps hosts from being used, all of them are named, each in one line
// with the last words of what tried.
func TestHostsThatFailAreReportedTogether(t *testing.T) {
	fake := t.TempDir()
	writeProgram(t, fake+"/uname", "#!/bin/sh\necho vax\n")
	b := testbed.Make(t, testbed.Config{Hosts: 5, SSHD: func(i int) string {
		return map[int]string{
			3: "PubkeyAuthentication no\nPasswordAuthentication yes",
			4: "SetEnv PATH=" + fake + ":/usr/bin:/bin",
		}[i]
	}})
	b.StopServer(2)
	b.Silence(5)
	begun := time.Now()
	status, out, said := remotely(t, b, "-q", "-H", "host1,host2,host3,host4,host5,nosuch.invalid", "echo", "hello")
	if status != statusFailed || out != "" || len(said) != 5 {
		t.Errorf("status %d, output %q, lines:\n%s", status, out, strings.Join(said, "\n"))
	}
	matches(t, "failures", said,
		`^gompirun: host2: .*`+b.Addr(2)+`.*Connection refused$`,
		`^gompirun: host3: .*Permission denied \(password\)\.; want a key`,
		`^gompirun: host4: its processors are vax, those here `,
		`^gompirun: host5: .*timed out$`,
		`^gompirun: nosuch.invalid: .*Could not resolve`)
	if took := time.Since(begun); took > failureTime+10*time.Second {
		t.Errorf("that took %v", took)
	}
	b.Mend(5)
	b.AwaitEmpty(10 * time.Second)
}

// Agents that are none, or of another version, or end at once.
func TestAgentsThatFailAreReported(t *testing.T) {
	b := testbed.New(t, 1)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(old, ctl.Append([]byte("Welcome\n"+ctl.Magic), &ctl.Hello{Version: "0.0.9"}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ agent, want string }{
		{"cat " + old + "; sleep 100; true", `^gompirun: host1: its gompirun is version 0.0.9, want ` + regexp.QuoteMeta(ctl.Version) + ` as here$`},
		{"echo no disk >&2; exit 3; true", `^gompirun: host1: ssh exited with status 3: no disk$`},
		{"nosuchagent", `^gompirun: host1: ssh exited with status 127: .*nosuchagent.*not found`},
		{"yes; true", `^gompirun: host1: it printed 65536 bytes and is no agent: "y\\ny`},
		{"sleep 100; true", `^gompirun: host1: no agent after 2s`},
	} {
		status, _, said := remotely(t, b, "-q", "-launch-agent", tt.agent, "-start-timeout", "2", "-H", "host1", "true")
		if status != statusFailed {
			t.Errorf("%s: status %d, want %d", tt.agent, status, statusFailed)
		}
		matches(t, tt.agent, said, tt.want)
		for _, p := range b.Processes(1) { // they do not know that they should end with their channel
			if p.Command == "sleep 100" {
				syscall.Kill(p.PID, syscall.SIGKILL)
			}
		}
	}
}

// Ctrl-C and the job's time limit work while hosts are waited for, and what is
// waited for is said.
func TestStartUpCanBeEnded(t *testing.T) {
	b := testbed.New(t, 2)
	b.Silence(2)
	status, _, said := remotely(t, b, "-timeout", "3", "-H", "host1,host2", "true")
	if status != statusTimeout {
		t.Errorf("-timeout: status %d, want %d", status, statusTimeout)
	}
	matches(t, "-timeout", said, `^gompirun: 1 of 2 agents are up, waiting for host2$`,
		`^gompirun: time limit of 3s reached while waiting for host2$`)
	k := startTalk(t, "-rsh", b.RSH(), "-H", "host1,host2", "true")
	k.expect("waiting for host2")
	k.cmd.Process.Signal(syscall.SIGINT)
	k.expect("gompirun: interrupted")
	if err := k.cmd.Wait(); k.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("Ctrl-C: %v, want status 130", err)
	}
	b.AwaitEmpty(10 * time.Second)
}

// A host that is only just starting is waited for by those who say so.
func TestHostsMayStartLater(t *testing.T) {
	b := testbed.New(t, 1)
	b.StopServer(1)
	k := startTalk(t, "-rsh", b.RSH(), "-start-timeout", "20", "-H", "host1", "hostname")
	k.expect("0 of 1 agents are up, waiting for host1")
	b.StartServer(1)
	k.expect("host1")
	if err := k.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
