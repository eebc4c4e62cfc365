//go:build linux

package mpirun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/testbed"
)

// A disaster is one way for a job on two hosts to fail, and its required outcome. In any case no
// process of the job is left on any host.
type disaster struct {
	name   string
	flags  string
	run    []string       // the program; ready is awaited from each of its 4 ranks
	early  bool           // it may not get as far as that
	strike func(s *scene) // once all ranks are ready
	after  func(s *scene) // once gompirun has ended
	status int            // of gompirun; -1: it was killed
	first  string         // what the first line of gompirun's own matches
	output string         // what its standard output matches, too
}

// beat is the heartbeat of jobs whose silence is to be noticed: fast, for the tests' sake,
// but ssh, sshd and gompirun may be kept from running for seconds where many processes
// yield the processor to each other (Linux 6.18 with sched_autogroup_enabled: 6 s seen).
const beat = 3 * time.Second

// Limits, generous because the machine may be busy: for failures noticed at once, and failures
// noticed by silence.
const (
	soon  = time.Minute
	later = soon + 4*beat
)

// A scene is a job on host1 and host2, two ranks each.
type scene struct {
	t   *testing.T
	bed *testbed.Bed
	cmd *exec.Cmd
	out bytes.Buffer
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// on returns the processes of host i whose command line holds text.
func (s *scene) on(i int, text string) []int {
	var pids []int
	for _, p := range s.bed.Processes(i) {
		if strings.Contains(p.Command, text) {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) == 0 {
		s.t.Errorf("no %q on host%d: %v", text, i, s.bed.Processes(i))
	}
	return pids
}

func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, sig)
	}
}

// kill returns a strike that signals processes of host2.
func kill(sig syscall.Signal, texts ...string) func(*scene) {
	return func(s *scene) {
		for _, text := range texts {
			signalAll(s.on(2, text), sig)
		}
	}
}

// signalLauncher returns a strike that signals gompirun itself.
func signalLauncher(sigs ...syscall.Signal) func(*scene) {
	return func(s *scene) {
		for i, sig := range sigs {
			if i > 0 {
				s.awaitOutput("once more kills it") // else two signals would be one
			}
			s.cmd.Process.Signal(sig)
		}
	}
}

// awaitOutput waits until gompirun has said something.
func (s *scene) awaitOutput(text string) {
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(s.cmd.Stderr.(*os.File).Name())
		if bytes.Contains(data, []byte(text)) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("gompirun does not say %q", text)
			return
		}
	}
}

const (
	agentProcess  = remote.GuardedFlag
	wardenProcess = remote.AgentFlag
	ready         = "echo ready; "
	idle          = "sleep 1000 & setsid sleep 1000 & " + ready + "wait"
)

var disasters = []disaster{
	// Ranks.
	{name: "a rank exits with a status", early: true,
		run: sh(ready + `test $RANK = 3 && { echo no disk >&2; exit 7; }; sleep 1000`), status: 7,
		first: `^gompirun: rank 3 on host2 exited with status 7 \(pid \d+\)$`},
	{name: "a rank is killed", run: sh(idle),
		strike: func(s *scene) { syscall.Kill(s.on(2, "setsid sleep 1000 & echo")[0], syscall.SIGKILL) }, status: 137,
		first: `^gompirun: rank \d on host2 was killed by signal 9 \(SIGKILL\)`},
	{name: "a rank breaks down", early: true, run: sh(ready + `test $RANK = 1 && kill -SEGV $$; sleep 1000`),
		status: 139,
		first:  `^gompirun: rank 1 on host1 was killed by signal 11 \(SIGSEGV\)`},
	{name: "a rank aborts", early: true, run: []string{"rank", "say", "3:abort", "wait"}, status: 13,
		first: `^gompirun: rank 3 on host2 aborted the job with status 13: no disk$`},
	{name: "a rank ends without goodbye", early: true,
		run: []string{"rank", "say", "0:wait", "1:wait", "2:wait"}, status: 1,
		first: `^gompirun: rank 3 on host2 ended with status 0 without closing its communicators`},
	{name: "a rank is killed amid messages", run: []string{"loop"}, status: 137,
		strike: func(s *scene) { syscall.Kill(s.on(2, "loop")[0], syscall.SIGKILL) },
		first:  `^gompirun: rank \d on host2 was killed by signal 9 \(SIGKILL\)`},
	{name: "a rank is stopped when another fails", early: true,
		run: sh(ready + `test $RANK = 3 && kill -STOP $$; test $RANK = 0 && { sleep 0.3; exit 5; }; sleep 1000`), status: 5,
		first: `^gompirun: rank 0 on host1 exited with status 5`},
	{name: "ranks ignore TERM", early: true, flags: "-kill-delay 0.3",
		run: sh(`trap "" TERM; ` + ready + `test $RANK = 2 && exit 6; while :; do sleep 1; done`), status: 6,
		first: `^gompirun: rank 2 on host2 exited with status 6`},
	{name: "ranks leave daemons", early: true,
		run: sh(`setsid sh -c 'setsid sleep 1000 & sleep 1000' >/dev/null 2>&1 & ` + ready), status: 0,
		first: `processes that ranks left behind, and were killed: \d+`},

	// The user.
	{name: "the user interrupts", run: sh(idle), strike: signalLauncher(syscall.SIGINT), status: 130,
		first: `^gompirun: interrupted: ending the job; once more kills it$`},
	{name: "the user interrupts twice", flags: "-kill-delay 1000",
		run:    sh(`trap "" INT TERM; ` + ready + `while :; do sleep 1; done`),
		strike: signalLauncher(syscall.SIGINT, syscall.SIGINT),
		status: 130, first: `interrupted`},
	{name: "TERM lets ranks save", flags: "-q -kill-delay 100",
		run:    sh(`trap "sleep 0.2; echo saved; exit 0" TERM; sleep 1000 & ` + ready + `wait`),
		strike: signalLauncher(syscall.SIGTERM),
		status: 143, first: `^gompirun: ended by signal 15 \(terminated\)$`, output: `(?s)(saved.*){4}`},
	{name: "the terminal is gone", flags: "-q", run: sh(idle), strike: signalLauncher(syscall.SIGHUP), status: 129,
		first: `^gompirun: ended by signal 1 \(hangup\)$`},
	{name: "ranks flood their output", flags: "-q", run: sh(ready + `yes`), strike: signalLauncher(syscall.SIGINT),
		status: 130, first: `^gompirun: interrupted$`},
	{name: "the time is over", flags: "-q -timeout 20", run: sh(idle), status: 124,
		first: `^gompirun: time limit of 20s reached$`},
	{name: "a collective lacks a rank when the time is over", flags: "-timeout 20", run: []string{"stall", "allreduce"},
		early: true, status: 124,
		first: `^gompirun: allreduce\(4 float32, sum\) number 2: arrived: rank 0-1,3; missing: rank 2$`},

	// gompirun.
	{name: "gompirun is killed", run: sh(idle), strike: signalLauncher(syscall.SIGKILL), status: -1, first: `^$`},
	{name: "an ssh of gompirun is killed", flags: "-q", run: sh(idle), strike: func(s *scene) {
		for _, pid := range childrenOf(s.cmd.Process.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if bytes.Contains(line, []byte("\x00host2\x00")) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}, status: 125, first: `^gompirun: the agent on host2 `},

	// Agents.
	{name: "an agent is killed", flags: "-q", run: sh(idle), strike: kill(syscall.SIGKILL, agentProcess), status: 125,
		first: `^gompirun: the agent on host2 .*killed by signal 9`},
	{name: "an agent is terminated", flags: "-q", run: sh(idle), strike: kill(syscall.SIGTERM, agentProcess),
		status: 125, first: `^gompirun: the agent on host2 .*killed by signal 15`},
	{name: "a watchdog is killed", flags: "-q", run: sh(idle), strike: kill(syscall.SIGKILL, wardenProcess),
		status: 125, first: `^gompirun: the agent on host2 `},

	// Hosts and the network.
	{name: "a login is killed", flags: "-q", run: sh(idle), strike: kill(syscall.SIGKILL, "sshd: root"), status: 125,
		first: `^gompirun: the agent on host2 `},

	// Jobs that never start.
	{name: "there is no such program", flags: "-q", run: []string{"no-such-program"}, early: true, status: 127,
		first: `^gompirun: rank \d on host[12]: cannot find "no-such-program"`},
	{name: "the program cannot be run", flags: "-q", run: []string{"/etc/passwd"}, early: true, status: 126,
		first: `^gompirun: rank \d on host[12]: cannot run "/etc/passwd"`},
	{name: "there is no such host", flags: "-q -H host1:2,nosuch.invalid:2", run: sh(idle), early: true, status: 125,
		first: `^gompirun: .*nosuch\.invalid`},
}

// Disasters shown only by silence, with fast heartbeats: of gompirun and agents, and of hosts and
// the network.
var silentProcesses = []disaster{
	{name: "gompirun is stopped, and the agents give it up", run: sh(idle), strike: func(s *scene) {
		s.cmd.Process.Signal(syscall.SIGSTOP)
		s.awaitNone()
		s.cmd.Process.Signal(syscall.SIGCONT)
	}, status: 125, first: `^gompirun: (gompirun itself did not run for (9\.|[1-9]\d)|the agent on host[12] is lost: ssh exited with status 125: gompirun: agent: nothing heard from gompirun for 9s, )`},
	{name: "an agent is stopped", run: sh(idle), strike: kill(syscall.SIGSTOP, agentProcess), status: 125,
		first: `^gompirun: (host2: nothing heard for|the agent on host2 )`},
	{name: "an agent and its ranks are stopped", run: sh(idle),
		strike: kill(syscall.SIGSTOP, agentProcess, "sleep 1000"), status: 125,
		first: `^gompirun: (host2: nothing heard for|the agent on host2 )`},
	{name: "an agent is stopped and gompirun killed", run: sh(idle), strike: func(s *scene) {
		kill(syscall.SIGSTOP, agentProcess)(s)
		s.cmd.Process.Kill()
	}, status: -1, first: `^$`},
}

var silentHosts = []disaster{
	{name: "a host is frozen, and thaws", run: sh(idle),
		strike: kill(syscall.SIGSTOP, "sshd: root", wardenProcess, agentProcess, "sleep 1000"),
		// who thaws last is the first to see the end
		after:  kill(syscall.SIGCONT, "sleep 1000", agentProcess, wardenProcess, "sshd: root"),
		status: 125, first: `^gompirun: host2: nothing heard for .*; 2 ranks from 2 to 3 lost with it$`},
	{name: "a cable is cut", run: sh(idle), strike: func(s *scene) { s.bed.Cut(2) }, status: 125,
		first: `^gompirun: host2: nothing heard for .*; 2 ranks from 2 to 3 lost with it$`},
	{name: "packets are dropped", run: sh(idle), strike: func(s *scene) { s.bed.Silence(2) }, status: 125,
		first: `^gompirun: host2: nothing heard for `},
	{name: "a cable is cut amid messages", run: []string{"loop"}, strike: func(s *scene) { s.bed.Cut(2) }, status: 125,
		first: `^gompirun: host2: nothing heard for `},
}

func TestDisasters(t *testing.T) { play(t, stress.Some(t, 5, disasters)) }

func TestDisastersOfSilentProcesses(t *testing.T) {
	play(t, stress.Some(t, 1, silentProcesses), "-heartbeat", beat.String())
}

func TestDisastersOfSilentHosts(t *testing.T) {
	play(t, stress.Some(t, 1, silentHosts), "-heartbeat", beat.String())
}

func play(t *testing.T, all []disaster, flags ...string) {
	t.Parallel() // it waits most of the time
	bed := testbed.New(t, 2)
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) {
			defer func() {
				bed.Mend(1)
				bed.Mend(2)
			}()
			d.play(t, bed, flags)
		})
	}
}

// starved are lines that say that something of the job got no processor for a while.
var starved = regexp.MustCompile(`agents are up, waiting for|heard again after |gets no processor|itself did not run for |(?m: the job ends$)`)

func (d *disaster) play(t *testing.T, bed *testbed.Bed, flags []string) {
	s := &scene{t: t, bed: bed}
	flags = append([]string{"-rsh", bed.RSH(), "-np", "4"}, flags...)
	if !strings.Contains(d.flags, "-H ") {
		flags = append(flags, "-H", "host1:2,host2:2")
	}
	s.cmd = exec.Command("gompirun", slices.Concat(flags, strings.Fields(d.flags), d.run)...)
	printed, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	s.cmd.Stderr = printed
	lines := started(t, s.cmd)
	defer s.cmd.Process.Kill()
	for n := 0; n < 4 && !d.early; {
		line, err := lines.ReadString('\n')
		if err != nil {
			data, _ := os.ReadFile(printed.Name())
			t.Fatalf("%q, %v; want ready from each of 4 ranks; %s", line, err, data)
		}
		if strings.HasPrefix(line, "ready") {
			n++
		}
	}
	begun := time.Now()
	late := time.AfterFunc(later, func() { s.cmd.Process.Signal(syscall.SIGABRT) })
	if d.strike != nil {
		d.strike(s)
	}
	io.Copy(io.Discard, &tail{lines, &s.out})
	err = s.cmd.Wait()
	late.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	took := time.Since(begun)
	if d.after != nil {
		d.after(s)
	}
	text, _ := os.ReadFile(printed.Name())
	first := ""
	for line := range strings.Lines(string(text)) {
		isStarved := starved.MatchString(line) &&
			!regexp.MustCompile(d.first).MatchString(strings.TrimSuffix(line, "\n"))
		if first == "" && strings.HasPrefix(line, "gompirun: ") && !isStarved {
			first = strings.TrimSuffix(line, "\n")
		}
	}
	if status := s.cmd.ProcessState.ExitCode(); status != d.status {
		t.Errorf("status %d after %v, want %d", status, took, d.status)
	}
	if !regexp.MustCompile(d.first).MatchString(first) {
		t.Errorf("first line %q, want %q", first, d.first)
	}
	if !regexp.MustCompile(d.output).Match(s.out.Bytes()) {
		t.Errorf("output %q, want %q", s.out.Bytes(), d.output)
	}
	s.awaitNone()
	if t.Failed() {
		t.Logf("all that was said:\n%s", text)
	}
}

// awaitNone waits until no process of a job is left on any host. Logins stay
// until TCP gives up the connection, if no message of its end can reach them.
func (s *scene) awaitNone() {
	s.t.Helper()
	for deadline := time.Now().Add(later); ; time.Sleep(5 * time.Millisecond) {
		var left []testbed.Process
		for i := 1; i <= 2; i++ {
			for _, p := range s.bed.Processes(i) {
				if !strings.HasPrefix(p.Command, "sshd: root") {
					left = append(left, p)
				}
			}
		}
		left = append(left, s.logins()...)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("left: %v", left)
			return
		}
	}
}

// logins returns the processes of this machine that log in to the hosts.
func (s *scene) logins() []testbed.Process {
	var found []testbed.Process
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, dir := range dirs {
		line, _ := os.ReadFile(dir)
		pid, _ := strconv.Atoi(strings.Split(dir, "/")[2])
		if bytes.Contains(line, []byte(s.bed.SSHConfig)) && pid != s.cmd.Process.Pid {
			found = append(found, testbed.Process{PID: pid,
				Command: string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))})
		}
	}
	return found
}

// A tail keeps the end of a reader's data.
type tail struct {
	io.Reader
	kept *bytes.Buffer
}

func (r *tail) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.kept.Len() > 1<<16 {
		r.kept.Reset()
	}
	r.kept.Write(b[:n])
	return n, err
}
