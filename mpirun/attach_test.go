//go:build linux

package mpirun

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/accept/accepttest"
)

func TestAttachRunsADebuggerOnTheProcessThatJoined(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"gdb", "dlv"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	// Rank 0 is a Go program that a shell has started, rank 1 none of ours.
	k := startTalk(t, "-v", "-np", "1", "sh", "-c", "rank meet wait; true", ":", "-np", "1", "sh", "-c", "rank meet goodbye; sleep 1000")
	job, pids := "", map[string]string{}
	ready := regexp.MustCompile(`rank 1 of 2, local 1 of 2`)
	for line := range k.lines {
		if ready.MatchString(line) {
			break
		}
	}
	for _, name := range socketsOf(t, k.cmd.Process.Pid) {
		job = strings.TrimPrefix(name, questionPrefix())
	}
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
	attach := func(args ...string) (string, int) {
		cmd := exec.Command("gompirun", append([]string{"-job", job}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, status := attach("-attach", "0"); status != 0 || !strings.Contains(out, "dlv attach "+pids["0"]+"\n") {
		t.Errorf("status %d, %q; want dlv on process %s", status, out, pids["0"])
	}
	if out, status := attach("-attach", "1", "-debugger", "echo debug"); status != 0 || !strings.HasPrefix(out, "gompirun: rank 1 is process ") || !strings.Contains(out, "\ndebug ") {
		t.Errorf("status %d, %q; want the other debugger", status, out)
	}
	if out, status := attach("-attach", "7"); status != 125 || !strings.Contains(out, "rank 7 does not run: the job has 2 ranks") {
		t.Errorf("status %d, %q; want that there is no rank 7", status, out)
	}
	out, err := exec.Command("gompirun", "-job", "nosuch", "-attach", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `-job "nosuch": no gompirun of yours runs that`) {
		t.Errorf("%v, %q; want that there is no such job", err, out)
	}
	k.cmd.Process.Signal(syscall.SIGTERM)
	for range k.lines { // to the end
	}
	k.cmd.Wait()
	if code := k.cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("status %d, want 143: being asked changes nothing", code)
	}
}

// socketsOf returns the names of the abstract sockets of gompirun that a process
// has.
func socketsOf(t *testing.T, pid int) []string {
	t.Helper()
	mine := map[string]bool{}
	fds, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, fd := range fds {
		to, _ := os.Readlink(fd)
		mine[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
	}
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) == 8 && mine[f[6]] && strings.HasPrefix(f[7], questionPrefix()) {
			names = append(names, f[7])
		}
	}
	if len(names) != 1 {
		t.Fatalf("gompirun listens on %q, want one name", names)
	}
	return names
}

// Another user may take any name, and has it shown to nobody.
func TestAttachTellsJobsApartAndIgnoresStrangers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	k := startTalk(t, "-np", "1", "sh", "-c", "echo ready; sleep 1000")
	k.expect("ready")
	own := strings.TrimPrefix(socketsOf(t, k.cmd.Process.Pid)[0], questionPrefix())
	fd := strangersSocket(t, questionPrefix()+"\x1b[31mevil")
	defer unix.Close(fd)
	if _, err := ask(questionPrefix()+"\x1b[31mevil", 0); !errors.Is(err, errStranger) {
		t.Errorf("the stranger's socket: %v, want %v", err, errStranger)
	}
	if name, err := jobSocket(""); err == nil && name != questionPrefix()+own { // or other tests run jobs beside
		t.Errorf("found %q, want that of %s", name, own)
	}
	second := startTalk(t, "-np", "2", "sh", "-c", "echo ready; sleep 1001")
	second.expect("ready")
	_, err := jobSocket("")
	if err == nil || strings.Contains(err.Error(), "evil") {
		t.Fatalf("%v, want both jobs and no stranger's", err)
	}
	for _, want := range []string{`"` + own + `": -np 1 "sh -c echo ready; sleep 1000", for `, `: -np 2 "sh -c echo ready; sleep 1001", for `} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// strangersSocket returns a socket that another user listens on.
func strangersSocket(t *testing.T, name string) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const nobody, same = 65534, ^uintptr(0)
	// The system calls themselves change this thread alone.
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, nobody, same); e != 0 {
		t.Fatal(e)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: name})
	}
	if err == nil {
		err = unix.Listen(fd, 5)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same); e != 0 {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A socket that has as many waiting as it takes, as anybody can make one, is no job.
func TestAttachPassesOverSocketsThatTakeNobody(t *testing.T) {
	name := questionPrefix() + "full"
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: name}), unix.Listen(fd, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		var conn net.Conn
		if conn, err = net.Dial("unix", name); err == nil {
			defer conn.Close()
		}
	}
	if _, err := ask(name, 0); !errors.Is(err, errUnreachable) {
		t.Errorf("%v, want %v", err, errUnreachable)
	}
	if _, err := jobSocket("full"); err == nil || !strings.Contains(err.Error(), `no gompirun of yours runs that`) {
		t.Errorf("%v, want no job", err)
	}
}

// A job that cannot be asked for a while, since descriptors are exhausted, can be
// asked afterwards.
func TestAttachOutlivesErrors(t *testing.T) {
	name := questionPrefix() + "tired"
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tired := &accepttest.Tired{Listener: l}
	tired.Left.Store(1)
	j := &job{questions: make(chan question), done: make(chan struct{})}
	defer close(j.done)
	go j.answerOn(tired)
	go func() {
		select {
		case q := <-j.questions:
			q.answer <- whereabouts{PID: q.rank + 1}
		case <-j.done:
		}
	}()
	if w, err := ask(name, 6); err != nil || w.PID != 7 {
		t.Errorf("%+v, %v; want an answer", w, err)
	}
}
