//go:build linux

package mpirun

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// askUntil sends QUIT until gompirun answers with a line that begins with want, and
// returns the lines of that answer up to the one with last.
func (k *talk) askUntil(want, last string) string {
	k.t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		k.cmd.Process.Signal(syscall.SIGQUIT)
		if line := k.expect("gompirun: localhost: rank "); !strings.HasPrefix(line, want) {
			continue // it is not there yet
		}
		var all []string
		for line := range k.lines {
			if all = append(all, line); strings.Contains(line, last) {
				return strings.Join(all, "\n")
			}
		}
	}
	k.t.Fatalf("no answer begins with %q", want)
	return ""
}

func TestProgramsThatDoNotUseGompiAreReported(t *testing.T) {
	k := startTalk(t, "-np", "2", "sh", "-c", `echo hello $RANK >&2; sleep 1000; true`)
	k.expect("hello")
	k.expect("hello")
	printed := k.askUntil(`gompirun: localhost: rank 0-1 is outside gompi: "sleep 1000" is sleeping`, "| hello 1")
	for _, want := range []string{`localhost: rank 0: process \d+ began [0-9.]+m?s ago and has computed for [0-9.]+m?s\n  \| its last output:\n  \| hello 0\n`, `localhost: rank 1: process \d+ began`} {
		if !regexp.MustCompile(want).MatchString(printed) {
			t.Errorf("no match for %q in\n%s", want, printed)
		}
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	k.ends(143) // the query must end no rank
}

// A stand-in for py-spy tells how it was called: without stopping the program.
func TestPythonProgramsAreAskedThroughPySpy(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "py-spy"), []byte("#!/bin/sh\necho py-spy $@\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	k := startTalk(t, "-np", "1", python, "-u", "-c", "import time; print('ready'); time.sleep(1000)")
	k.expect("ready")
	k.insist(syscall.SIGQUIT, "localhost: rank 0: process ")
	if line := k.expect("| py-spy "); !regexp.MustCompile(`py-spy dump --nonblocking --pid \d+$`).MatchString(line) {
		t.Errorf("%q", line)
	}
}
