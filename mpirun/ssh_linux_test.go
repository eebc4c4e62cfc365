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

var _ = os.Getenv
var _ = filepath.Join
