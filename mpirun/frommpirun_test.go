package mpirun

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/stress"
)

// TestEveryLineOfComingFromMpirun runs the lines of docs/from-mpirun.md: each
// starts as many ranks as the page says, and says so if something is ignored.
func TestEveryLineOfComingFromMpirun(t *testing.T) {
	stress.Slow(t, "it runs all lines of a page")
	text, err := os.ReadFile("../docs/from-mpirun.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hosts": "localhost slots=2\n127.0.0.2 slots=2\n",
		"ranks": "rank 0=localhost slot=0\nrank 1=127.0.0.2\n",
		"app":   "-np 1 echo hello\n-np 2 echo hello\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := 0
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(row, "|")
		line := strings.Trim(strings.TrimSpace(cells[min(1, len(cells)-1)]), "`")
		if len(cells) != 5 || !strings.HasPrefix(line, "mpirun ") {
			continue
		}
		lines++
		t.Run(line, func(t *testing.T) {
			ranks, err := strconv.Atoi(strings.TrimSpace(cells[2]))
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr := runLine(t, dir, line)
			if got := strings.Count(stdout, "hello\n"); got != ranks {
				t.Errorf("%d ranks, want %d:\n%s%s", got, ranks, stdout, stderr)
			}
			ignored := strings.HasPrefix(strings.TrimSpace(cells[3]), "ignored")
			if strings.Contains(stderr, "is ignored") != ignored {
				t.Errorf("the page says %q, and gompirun:\n%s", strings.TrimSpace(cells[3]), stderr)
			}
		})
	}
	if lines < 30 {
		t.Errorf("the page has %d lines of mpirun: want its table", lines)
	}
}

// runLine runs a line of mpirun with gompirun, ranks that say hello, and two
// names of this machine for the hosts a and b.
func runLine(t *testing.T, dir, line string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	line = strings.NewReplacer("mpirun ", "gompirun ", "./prog", "echo hello", " a:2,b:2", " localhost:2,127.0.0.2:2",
		" a,b", " localhost,127.0.0.2").Replace(line)
	words := strings.Fields(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	return out.String(), errs.String()
}
