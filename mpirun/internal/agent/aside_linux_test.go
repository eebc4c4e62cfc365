package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// A looped is an agent whose loop a test runs.
type looped struct {
	*testing.T
	*agent
	turn sync.Mutex // held while the loop does not wait for events
}

func newLooped(t *testing.T) *looped {
	t.Helper()
	l := &looped{T: t, agent: &agent{in: -1, out: -1, ready: proc.Ready, launch: &ctl.Launch{}, local: map[int]int{},
		callers: map[int]*wire.Frames{}, listenFD: -1, held: -1, inherit: -1, pulse: pulse{watchdog: -1}}}
	l.clogged, l.output.Window = true, 1<<20 // reports are kept
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.loop.Close)
	return l
}

// has returns a report of one type, nil if there is none.
func has[M ctl.Message](l *looped) (none M) {
	r := ctl.NewReader(bytes.NewReader(append([]byte(ctl.Magic), l.reports...)))
	for m, err := r.Next(); err == nil; m, err = r.Next() {
		if m, ok := m.(M); ok {
			return m
		}
	}
	return none
}

// until runs the loop until something holds.
func (l *looped) until(what string, holds func() bool) {
	l.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			l.Fatalf("after a minute still not: %s", what)
		}
		events, err := l.loop.Wait(100)
		if err != nil {
			l.Fatal(err)
		}
		l.turn.Lock()
		l.loop.Handle(events)
		l.tick(time.Now())
		l.turn.Unlock()
	}
}

// A hungFile is a program that cannot be opened before released is closed, as one on a file system
// that does not answer: a lease keeps it.
type hungFile struct {
	path     string
	opened   chan bool     // whether the loop went on when somebody wanted to open it
	released chan struct{} // closed by the test
}

func newHungFile(l *looped) *hungFile {
	l.Helper()
	h := &hungFile{path: filepath.Join(l.TempDir(), "program"), opened: make(chan bool, 1),
		released: make(chan struct{})}
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(h.path, program, 0o755); err != nil {
		l.Fatal(err)
	}
	f, err := os.Open(h.path)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { f.Close() })
	wanted := make(chan os.Signal, 1)
	signal.Notify(wanted, unix.SIGIO)
	l.Cleanup(func() { signal.Stop(wanted) })
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		l.Fatal(err)
	}
	go func() { // until it is released
		<-wanted
		begun := time.Now()
		l.turn.Lock() // a loop that waits for the file does so until the kernel breaks the lease, for 45 s
		goesOn := time.Since(begun) < 20*time.Second
		l.turn.Unlock()
		h.opened <- goesOn
		if goesOn {
			<-h.released
		}
		unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	}()
	return h
}

// wait runs the loop until somebody wants to open the file.
func (h *hungFile) wait(l *looped) {
	l.Helper()
	goesOn := false
	l.until("the program is opened", func() bool {
		select {
		case goesOn = <-h.opened:
			return true
		default:
			return false
		}
	})
	if !goesOn {
		l.Fatal("the loop waits for the program's file")
	}
}

// An agent continues while the file system of a program does not answer, says so, and then starts
// the ranks. The same holds for a rank that replaces another.
func TestTheLoopDoesNotWaitForAProgramsFile(t *testing.T) {
	if err := proc.Adopt(); err != nil {
		t.Fatal(err)
	}
	l := newLooped(t)
	l.launch, l.hello = nil, &ctl.Hello{}
	defer func() {
		l.killAll()
		l.until("all is killed", func() bool { return l.end.killing.IsZero() })
		l.group.Remove()
		l.releases.Wait()
		l.segment.Close()
		unix.Close(l.listenFD)
	}()
	program := newHungFile(l)
	l.layout = ctl.Layout{Placement: wire.Runs([]int{0}), Hosts: []string{"a"}}
	order := &ctl.Launch{
		JobID: "job", Size: 1, Nodes: 1, Stdin: ctl.StdinNone, Recover: true, Spares: 1,
		Programs: []ctl.Program{{Argv: []string{program.path, "1000"}}}, Ranks: []ctl.Rank{{Rank: 0}},
	}
	l.start(order)
	program.wait(l)
	l.pong(&ctl.Ping{})
	if has[*ctl.Pong](l) == nil || has[*ctl.Started](l) != nil {
		t.Error("it has started the rank, or has not answered")
	}
	l.reportSlow(l.preparation.since.Add(stepTime))
	if n := has[*ctl.Note](l); n == nil || !strings.Contains(n.Text, fmt.Sprintf("as those of %q", program.path)) {
		t.Errorf("it says %+v, want that the program is waited for", n)
	}
	close(program.released)
	l.until("the rank has been started", func() bool {
		return has[*ctl.Started](l) != nil || has[*ctl.Failed](l) != nil
	})
	if failed := has[*ctl.Failed](l); failed != nil {
		t.Fatalf("%+v", failed)
	}

	program = newHungFile(l)
	l.preparation.Programs[0].Path = program.path
	l.replace(&ctl.Replace{Rank: 1})
	program.wait(l)
	if l.ranks[1].pid != 0 {
		t.Error("the replacement has been started")
	}
	close(program.released)
	l.until("the replacement has been started", func() bool { return l.ranks[1].pid != 0 })
	if has[*ctl.Failed](l) != nil {
		t.Errorf("%+v", has[*ctl.Failed](l))
	}
}

// An order that cannot be followed ends the job: nobody would wait for ranks that never start.
func TestAnOrderThatMakesNoSenseFails(t *testing.T) {
	for what, order := range map[string]*ctl.Launch{
		"no ranks":    {Size: 1, Nodes: 1, Programs: []ctl.Program{{Argv: []string{"true"}}}},
		"no programs": {Size: 4, Nodes: 1, Ranks: []ctl.Rank{{Rank: 3}}},
		"no such host": {Size: 4, Node: 1, Nodes: 1, Programs: []ctl.Program{{Argv: []string{"true"}}},
			Ranks: []ctl.Rank{{Rank: 3}}},
		"unknown layout": {Size: 4, Nodes: 2, Programs: []ctl.Program{{Argv: []string{"true"}}},
			Ranks: []ctl.Rank{{Rank: 3}}},
		"a second launch": {Size: 4, Nodes: 1, Programs: []ctl.Program{{Argv: []string{"true"}}},
			Ranks: []ctl.Rank{{Rank: 3}}},
	} {
		l := newLooped(t)
		if what != "a second launch" {
			l.launch = nil
		}
		l.layout = ctl.Layout{Placement: wire.Runs([]int{0}), Hosts: []string{"a"}}
		l.start(order)
		want := 0
		if len(order.Ranks) > 0 {
			want = 3
		}
		if f := has[*ctl.Failed](l); f == nil || f.Rank != want || !strings.Contains(f.Text, "an order to start") {
			t.Errorf("%s: %+v, want that rank %d failed", what, f, want)
		}
	}
}

// A gompi-topo on a file system that hangs delays one answer to top, and no other.
func TestAnswersDoNotWaitForAGompiTopoThatHangs(t *testing.T) {
	l, dir := newLooped(t), t.TempDir()
	h := newHungFile(l)
	if err := os.Symlink(h.path, filepath.Join(dir, "gompi-topo")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("LD_LIBRARY_PATH", dir)
	l.answer(&ctl.Ask{Counts: true})
	<-h.opened // in the background, for the loop has not run since
	l.answer(&ctl.Ask{Counts: true})
	if has[*ctl.Doing](l) == nil {
		t.Error("the second is not answered at once")
	}
	close(h.released)
	l.until("the first is answered", func() bool { return l.looks == 0 && !l.asksGPUs })
}

// An agent continues while py-spy looks at a rank, and the rank lives until it has looked.
func TestTheLoopDoesNotWaitForPySpy(t *testing.T) {
	if err := proc.Adopt(); err != nil {
		t.Fatal(err)
	}
	l := newLooped(t)
	dir := t.TempDir()
	for _, name := range []string{"called", "go"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	spy := fmt.Sprintf("#!/bin/sh\necho called >%[1]s/called\nread go <%[1]s/go\necho in main\n", dir)
	for name, program := range map[string][]byte{"python3": shell, "py-spy": []byte(spy)} {
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(dir, "python3"), "-c", "echo; read end")
	cmd.Args[0], cmd.Env = "sh", []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	if l.segment, err = seg.New([]world.Rank{0}); err != nil {
		t.Fatal(err)
	}
	defer l.segment.Close()
	l.launch.Ranks = []ctl.Rank{{}}
	p := l.add(ctl.Rank{})
	p.pid, l.alive = cmd.Process.Pid, 1

	called, err := os.OpenFile(filepath.Join(dir, "called"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer called.Close()
	called.SetReadDeadline(time.Now().Add(time.Minute))
	l.answer(&ctl.Ask{})
	if line, err := bufio.NewReader(called).ReadString('\n'); line != "called\n" {
		t.Fatalf("py-spy says %q, %v", line, err)
	}
	l.terminate(&ctl.Terminate{Delay: time.Hour})
	l.tick(time.Now())
	if has[*ctl.Doing](l) != nil || !l.end.deadline.IsZero() {
		t.Error("py-spy is done, or the rank has got TERM meanwhile")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	l.until("TERM is sent", func() bool { return !l.end.deadline.IsZero() })
	if d := has[*ctl.Doing](l); d == nil || !strings.HasSuffix(d.Ranks[0].Details, "\nin main\n") {
		t.Errorf("reported %+v, want the stack", d)
	}
	if state, err := cmd.Process.Wait(); err != nil || state.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("the rank: %v, %v, want it ended by TERM", state, err)
	}
}

// A rank that hangs up in PMI may be about to end, for which its connection is no reason, or
// continue.
func TestTheLoopDoesNotWaitForAClientsEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		l := newLooped(t)
		p := l.add(ctl.Rank{})
		l.pmi.Callbacks, l.pmi.Size, l.pmi.Clients = l.agent, 1, []*pmi.Client{p.pmi.Client}
		theirs, err := l.connectClient(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.pid, l.alive = cmd.Process.Pid, 1
		if p.pidfd, err = unix.PidfdOpen(p.pid, 0); err != nil { // its end is no event of the loop
			t.Fatal(err)
		}
		if _, err := unix.Write(theirs, []byte("cmd=init pmi_version=1 pmi_subversion=1\n")); err != nil {
			t.Fatal(err)
		}
		l.until("it is a client", func() bool { return p.pmi.State() == pmi.Initialized })
		unix.Close(theirs)
		l.until("it has hung up", func() bool { return p.pmi.fd < 0 })
		if has[*ctl.Failed](l) != nil || l.loop.Running() != 1 {
			t.Error("it is judged at once")
		}
		if ends {
			cmd.Process.Kill()
			if err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
		}
		l.until("it is judged", func() bool { return l.loop.Running() == 0 })
		if failed := has[*ctl.Failed](l) != nil; failed == ends {
			t.Errorf("it ends: %v, and has failed: %v", ends, failed)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}
