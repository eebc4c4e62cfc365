//go:build linux

package mpirun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gompi/mpirun/internal/monitor"
)

func TestAttachRunsADebuggerOnTheProcessThatJoined(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"gdb", "dlv"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"),
			0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// Rank 0 is a Go program that a shell has started, rank 1 none of ours.
	k := startTalk(t, "-v", "-np", "1", "sh", "-c", "rank meet wait; true", ":", "-np", "1", "sh", "-c",
		"rank meet goodbye; sleep 1000")
	pids := map[string]string{}
	ready := regexp.MustCompile(`rank 1 of 2, local 1 of 2`)
	for line := range k.lines {
		if ready.MatchString(line) {
			break
		}
	}
	job := jobOf(t, k.cmd.Process.Pid)
	for _, shell := range childrenOf(childrenOf(k.cmd.Process.Pid)[0]) {
		env, _ := os.ReadFile("/proc/" + strconv.Itoa(shell) + "/environ")
		rank := regexp.MustCompile(`\x00RANK=(\d)`).FindSubmatch(env)
		if rank == nil {
			t.Fatalf("process %d is no rank", shell)
		}
		pids[string(rank[1])] = strconv.Itoa(shell)
		if string(rank[1]) == "0" {
			pids["0"] = strconv.Itoa(childrenOf(shell)[0])
		}
	}
	debug := func(args ...string) (string, int) {
		cmd := exec.Command("gompirun", append([]string{"attach", "-job", job}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, status := debug("0"); status != 0 || !strings.Contains(out, "dlv attach "+pids["0"]+"\n") {
		t.Errorf("status %d, %q; want dlv on process %s", status, out, pids["0"])
	}
	if out, status := debug("1", "-debugger", "echo debug"); status != 0 ||
		!strings.HasPrefix(out, "gompirun: rank 1 is process ") || !strings.Contains(out, "\ndebug ") {
		t.Errorf("status %d, %q; want the other debugger", status, out)
	}
	if out, status := debug("7"); status != 125 || !strings.Contains(out, "rank 7 does not run: the job has 2 ranks") {
		t.Errorf("status %d, %q; want that there is no rank 7", status, out)
	}
	out, err := exec.Command("gompirun", "attach", "-job", "nosuch", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `"nosuch": no gompirun of yours runs that`) {
		t.Errorf("%v, %q; want that there is no such job", err, out)
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	k.ends(143) // being asked changes nothing
}

// jobOf returns the id of the job that a process runs.
func jobOf(t *testing.T, pid int) string {
	t.Helper()
	for _, j := range monitor.Own() {
		if j.PID == pid {
			return j.ID
		}
	}
	t.Fatalf("process %d runs no job", pid)
	return ""
}

func TestAttachNamesTheJobsThatRun(t *testing.T) {
	want := []string{}
	for _, np := range []string{"1", "2"} {
		k := startTalk(t, "-np", np, "sh", "-c", "echo ready; sleep 100"+np)
		k.expect("ready")
		want = append(want, fmt.Sprintf(`: process %d, -np %s "sh -c echo ready; sleep 100%s", for `,
			k.cmd.Process.Pid, np, np))
	}
	out, err := exec.Command("gompirun", "attach", "0").CombinedOutput()
	for _, want := range want {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, %q; want %s", err, out, want)
		}
	}
}
