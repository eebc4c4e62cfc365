//go:build linux

package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The process in the place of rank 1 is rank 1 to the user: for a debugger, and on QUIT.
func TestAReplacementIsFoundByTheRankOfTheDead(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	k := startTalk(t, "-recover", "-spares", "1", "-np", "3", "hoard", gate)
	pids := map[int]int{}
	meet := func() {
		clear(pids)
		for len(pids) < 3 {
			var rank, pid int
			if _, err := fmt.Sscanf(k.expect(" is process "), "rank %d is process %d", &rank, &pid); err != nil {
				t.Fatal(err)
			}
			pids[rank] = pid
		}
	}
	meet()
	syscall.Kill(pids[1], syscall.SIGKILL)
	meet()
	job := jobOf(t, k.cmd.Process.Pid)
	out, err := exec.Command("gompirun", "attach", "-job", job, "1", "-debugger", "echo debug").CombinedOutput()
	if want := fmt.Sprintf("gompirun: rank 1 is process %d", pids[1]); err != nil ||
		!strings.Contains(string(out), want) {
		t.Errorf("%v, %q; want %q", err, out, want)
	}
	k.cmd.Process.Signal(syscall.SIGQUIT)
	line := regexp.MustCompile(`rank ([\d,-]+) `)
	for seen := ""; !strings.ContainsAny(seen, "1-") || !strings.Contains(seen, "2"); {
		m := line.FindStringSubmatch(k.expect("gompirun: localhost: rank "))
		if m == nil || strings.Contains(m[1], "3") {
			t.Fatalf("%q: want ranks 0 to 2", m)
		}
		seen += m[1]
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	k.ends(0)
}
