package mpirun

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/version"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/remote"
)

// rawPipe returns a pipe whose ends Go does not make non-blocking.
func rawPipe(t *testing.T) (r, w *os.File) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// Another process that has the same standard input may make it non-blocking while gompirun waits.
func TestInputThatBecomesNonBlockingIsReadToItsEnd(t *testing.T) {
	r, w := rawPipe(t)
	cmd := exec.Command("gompirun", "-np", "2", "-stdin", "all", "sh", "-c", `[ "$GOMPI_RANK" = 0 ] || exec cat`)
	cmd.Stdin = r
	out := bufio.NewReader(started(t, cmd))
	for i := range 3 {
		fmt.Fprintln(w, "line", i)
		if line, err := out.ReadString('\n'); line != fmt.Sprintln("line", i) || err != nil {
			t.Fatalf("line %d comes back as %q, %v", i, line, err)
		}
		if err := unix.SetNonblock(int(r.Fd()), true); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOutputThatBecomesNonBlockingIsWrittenWhole(t *testing.T) {
	r, w := rawPipe(t)
	const size = 1 << 20 // more than a pipe holds
	cmd := exec.Command("gompirun", "-np", "1", "sh", "-c",
		fmt.Sprintf("echo ready; read go; head -c %d /dev/zero; echo end", size))
	cmd.Stdout = w
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "ready\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if err := unix.SetNonblock(int(w.Fd()), true); err != nil {
		t.Fatal(err)
	}
	w.Close()
	fmt.Fprintln(in)
	capacity, err := unix.FcntlInt(r.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	for full := 0; full < capacity; { // then a write fails, or waits
		if full, err = unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	data, err := io.ReadAll(out)
	if len(data) != size+len("end\n") || !strings.HasSuffix(string(data), "end\n") || err != nil {
		t.Errorf("%d bytes that end with %q, %v; want %d", len(data), data[max(0, len(data)-9):], err,
			size+len("end\n"))
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Messages of each process of gompirun, too, wait for the reader of a pipe that is full and becomes
// non-blocking: the signal makes the writer try again.
func TestMessagesWaitForTheirReader(t *testing.T) {
	k := startTalk(t, "-np", "1", "sh", "-c", "echo ready; sleep 1000")
	k.expect("ready")
	job := fmt.Sprint(k.cmd.Process.Pid)
	for want, args := range map[string][]string{
		version.Text("gompirun") + "\n": {"-version"},
		cmdline.Help().Text(true):       {"help", "all"}, // more than the pipe holds
		"gompirun: -np \"x\": ":         {"-np", "x", "true"},
		"PID\n":                         {"-report-pid", "-", "-np", "1", "true"},
		"exited with status 1 (pid ":    {"-np", "1", "false"},
		" " + job + " ":                 {"ps", job},
		"RANK":                          {"top", "-once", "-interval", "0.05", job},
		"gompirun kill: \"nosuch\": no gompirun ": {"kill", "nosuch"},
		"gompirun: agent: ":                       {remote.LocalFlag},
		"gompirun: relay: EOF\n":                  {remote.RelayFlag},
	} {
		r, w := rawPipe(t)
		capacity, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 1) // a page
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("gompirun", args...)
		if cmd.Stderr = w; !strings.HasPrefix(args[0], "--") { // there standard output has messages
			cmd.Stdout = w
		}
		if _, err := w.Write(make([]byte, capacity)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(soon, func() { cmd.Process.Kill() })
		defer late.Stop()
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		pid := cmd.Process.Pid
		thread := awaitIn(pid, ended, "pipe_write")
		if err := errors.Join(unix.SetNonblock(int(w.Fd()), true), unix.Tgkill(pid, thread, unix.SIGURG)); err != nil {
			t.Fatal(err)
		}
		awaitIn(pid, ended, "poll_schedule_timeout")
		w.Close()
		data, err := io.ReadAll(r)
		text := string(data[capacity:])
		if want = strings.Replace(want, "PID", fmt.Sprint(pid), 1); err != nil || !strings.Contains(text, want) {
			t.Errorf("gompirun %q: %q, %v; want %q", args, text, err, want)
		}
	}
}

// Under inetd standard input and output are one socket, which rank 0 may make non-blocking.
func TestInputAndOutputThatAreOneSocket(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_SNDBUF, 1) // the least there is
	}
	if err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	defer r.Close()
	defer w.Close()
	const size = 1 << 18
	cmd := exec.Command("gompirun", "-np", "1", "sh", "-c",
		fmt.Sprintf("rank unblock goodbye && head -c %d /dev/zero; echo end", size))
	cmd.Stdin, cmd.Stdout = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for full := false; !full; time.Sleep(time.Millisecond) { // then a write fails, or waits
		ready := []unix.PollFd{{Fd: int32(fds[1]), Events: unix.POLLOUT}}
		n, err := unix.Poll(ready, 0)
		if full = n == 0; err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	data, err := io.ReadAll(r)
	if len(data) != size+len("end\n") || !strings.HasSuffix(string(data), "end\n") || err != nil {
		t.Errorf("%d bytes that end with %q, %v; want %d", len(data), data[max(0, len(data)-9):], err,
			size+len("end\n"))
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestInputThatCannotBeReadIsAnError(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("gompirun", "-np", "2", "-stdin", "all", "cat")
	cmd.Stdin = dir
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 125 ||
		!strings.Contains(string(out), "input was not read to its end: read /dev/stdin: is a directory") {
		t.Errorf("status %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
