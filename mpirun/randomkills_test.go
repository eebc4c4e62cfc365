//go:build linux

package mpirun

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/comm"
	"gompi/internal/stress"
	"gompi/mpirun/internal/remote"
)

// Random processes of a job are killed, stopped and continued at random instants.

var strikeSeed = flag.Int64("strikes", -1, "play the strikes of this seed alone")

// A victimKind is a part of a job that is struck.
type victimKind int

const (
	aRank victimKind = iota
	anAgent
	theLauncher
)

// A strike is a signal to one process, at some time after the one before.
type strike struct {
	after  time.Duration
	kind   victimKind
	which  int // of the ranks or agents
	signal syscall.Signal
	pause  time.Duration // of one that is stopped; 0: for good
}

func (k strike) String() string {
	victim := [...]string{fmt.Sprintf("rank %d", k.which), fmt.Sprintf("agent %d", k.which), "gompirun"}[k.kind]
	s := fmt.Sprintf("after %v: %v to %s", k.after.Round(time.Millisecond), k.signal, victim)
	if k.signal == syscall.SIGSTOP && k.pause > 0 {
		s += fmt.Sprintf(" for %v", k.pause.Round(time.Millisecond))
	}
	return s
}

// A raid is a job and the strikes against it.
type raid struct {
	seed    uint64
	np      int
	hosts   []string
	tcp     bool
	strikes []strike
	forGood bool // an agent is stopped and not continued: the time limit ends the job
	deadly  bool // the job ends by a strike
}

func (r *raid) String() string {
	return fmt.Sprintf("seed %d: %d ranks on %v, tcp %v, %v", r.seed, r.np, r.hosts, r.tcp, r.strikes)
}

// drawRaid returns the raid of a seed. One in three is harmless: processes are stopped for a
// while. In one of eight an agent is stopped for good. The launcher and an agent do not both end
// at once: the survivor ends the other's children.
func drawRaid(seed uint64) *raid {
	g := rand.New(rand.NewPCG(seed, 0))
	r := &raid{seed: seed, np: 1 + g.IntN(5), tcp: g.IntN(2) == 0}
	// two slots each, none without a rank
	r.hosts = []string{"localhost", "127.0.0.2", "127.0.0.3"}[:1+g.IntN((r.np+1)/2)]
	harmless := g.IntN(3) == 0
	r.forGood = !harmless && g.IntN(8) == 0
	var ended []victimKind
	for i := range 1 + g.IntN(3) {
		k := strike{kind: victimKind(g.IntN(3)), which: g.IntN(8), signal: syscall.SIGSTOP}
		k.after = time.Duration(g.ExpFloat64() * float64(80*time.Millisecond))
		k.pause = 1 + time.Duration(g.IntN(400))*time.Millisecond
		switch {
		case harmless:
		case r.forGood && i == 0:
			// Silence of a rank is none, and a launcher may be stopped as long as its user likes.
			k.kind, k.pause = anAgent, 0
		case k.kind == theLauncher:
			k.signal = []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}[g.IntN(4)]
		case g.IntN(4) > 0:
			k.signal = []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM}[g.IntN(3)]
		}
		if k.kind == anAgent && k.signal != syscall.SIGSTOP || k.kind == theLauncher && k.signal == syscall.SIGKILL {
			if ended = append(ended, k.kind); k.kind != ended[0] {
				k.signal = syscall.SIGSTOP
			}
		}
		r.deadly = r.deadly || k.signal != syscall.SIGSTOP || k.pause == 0
		r.strikes = append(r.strikes, k)
	}
	return r
}

// struckMain is a rank that computes until a file is there, with a child that has left
// its process group.
func struckMain() {
	ctx, stop := context.Background(), os.Args[1]
	c, err := comm.Init(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	send, recv := make([]int64, 5000), make([]int64, 5000)
	for i := 0; recv[0] == 0; i++ {
		if _, err := os.Stat(stop); err == nil {
			send[0] = 1
		}
		b := 2 + i*i%len(send[2:])
		send[1] = int64(i)
		if err := comm.Allreduce(ctx, c, send[:b], recv[:b], comm.Max); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if recv[1] != int64(i) {
			fmt.Fprintf(os.Stderr, "got %d in round %d\n", recv[1], i)
			os.Exit(9)
		}
	}
	if err := c.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// Whatever is killed, stopped and continued at whatever time, a job ends soon with a
// reason that is one, or continues, and leaves nothing.
func TestStressStrikesAtRandom(t *testing.T) {
	stress.Slow(t, "it runs jobs for seconds")
	t.Parallel() // it waits most of the time
	if *strikeSeed >= 0 {
		drawRaid(uint64(*strikeSeed)).play(t, new(agentsSeen))
		return
	}
	first, end := uint64(0), time.Now().Add(8*time.Second)
	if testing.Short() {
		end = time.Now().Add(3 * time.Second)
	}
	if stress.Asked() {
		first, end = rand.Uint64N(1<<40), stress.Until(t)
	}
	const atOnce = 3
	var struck agentsSeen
	var all sync.WaitGroup
	for lane := range uint64(atOnce) {
		all.Go(func() {
			for seed := first + lane; time.Now().Before(end) && !t.Failed(); seed += atOnce {
				drawRaid(seed).play(t, &struck)
			}
		})
	}
	all.Wait()
	struck.checkGroups(t)
}

// agentsSeen are the agents of all raids.
type agentsSeen struct {
	mu   sync.Mutex
	pids map[int]bool
}

func (a *agentsSeen) add(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pids == nil {
		a.pids = map[int]bool{}
	}
	a.pids[pid] = true
}

// checkGroups checks that no agent's control group (v2) is left. The next agent removes the group
// of an agent that was killed with its launcher.
func (a *agentsSeen) checkGroups(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "cgroup2", 0, ""); err != nil {
		t.Logf("control groups (v2) cannot be mounted, and are not looked at: %v", err)
		return
	}
	defer unix.Unmount(mount, 0)
	if out, err := exec.Command("gompirun", "-np", "1", "true").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	filepath.WalkDir(mount, func(path string, _ fs.DirEntry, _ error) error { // others' groups may go meanwhile
		var pid int
		if n, _ := fmt.Sscanf(filepath.Base(path), "gompi-%d", &pid); n == 1 && a.pids[pid] && !othersLive(pid) {
			t.Errorf("the control group %s is left", path)
		}
		return nil
	})
}

// othersLive reports whether pid is by now the number of a process of no raid.
func othersLive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && !bytes.Contains(data, []byte("\x00GOMPI_TEST_RAID="))
}

// A raided is a job that is being struck.
type raided struct {
	*raid
	t      *testing.T
	cmd    *exec.Cmd
	dir    string // its folder for temporary files, with nothing else in it
	mark   string // in the environment of all its processes
	output *os.File
	ended  chan struct{}
	seen   *agentsSeen
	hit    []string
	failed bool

	stopped int // for good; 0: none
}

func (d *raided) errorf(format string, args ...any) {
	d.failed = true
	d.t.Errorf(format, args...)
}

func (r *raid) play(t *testing.T, struck *agentsSeen) {
	dir := t.TempDir()
	output, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Error(err)
		return
	}
	defer output.Close()
	d := &raided{raid: r, t: t, dir: filepath.Join(dir, "tmp"),
		mark: fmt.Sprintf("GOMPI_TEST_RAID=%d.%d", os.Getpid(), r.seed), output: output, ended: make(chan struct{}),
		seen: struck}
	stop := filepath.Join(dir, "stop")
	args := []string{"-q", "-np", strconv.Itoa(r.np), "-H", strings.Join(r.hosts, ":2,") + ":2", "-kill-delay", "1",
		"-start-timeout", "20"}
	if r.forGood {
		args = append(args, "-timeout", forGoodTime.String())
	}
	d.cmd = exec.Command("gompirun", append(args, "struck", stop)...)
	d.cmd.Env = append(os.Environ(), d.mark, "TMPDIR="+d.dir)
	if r.tcp {
		d.cmd.Env = append(d.cmd.Env, "GOMPI_TRANSPORT=tcp")
	}
	var out bytes.Buffer
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.WaitDelay = &out, output, 5*time.Second
	if err := errors.Join(os.Mkdir(d.dir, 0o755), d.cmd.Start()); err != nil {
		t.Error(err)
		return
	}
	go func() {
		d.cmd.Wait()
		close(d.ended)
	}()
	for _, k := range r.strikes {
		d.strike(k)
	}
	if !r.deadly {
		os.WriteFile(stop, nil, 0o644)
	}
	d.outcome(&out)
}

// strike strikes a process as soon as there is one of its kind, unless the job ends before.
func (d *raided) strike(k strike) {
	select {
	case <-d.ended:
		return
	case <-time.After(k.after):
	}
	for {
		if pid, who := d.victim(k); pid != 0 && syscall.Kill(pid, k.signal) == nil {
			d.hit = append(d.hit, who+" "+k.signal.String())
			switch {
			case k.signal != syscall.SIGSTOP:
			case k.pause == 0:
				d.stopped = pid
			case pid != d.stopped:
				time.Sleep(k.pause)
				syscall.Kill(pid, syscall.SIGCONT)
			}
			return
		}
		select {
		case <-d.ended:
			return
		case <-time.After(time.Millisecond): // nothing tells of the start of others' children
		}
	}
}

// victim returns a process of a strike's kind, 0 if there is none, and gompirun's name for it.
func (d *raided) victim(k strike) (pid int, who string) {
	agents, ranks := d.parts()
	switch {
	case len(agents) == 0: // not even gompirun, which may not handle signals yet
		return 0, ""
	case k.kind == theLauncher:
		return d.cmd.Process.Pid, "gompirun"
	case k.kind == anAgent:
		return agents[k.which%len(agents)], "agent"
	}
	if k.which %= d.np; ranks[k.which] == 0 {
		return 0, ""
	}
	return ranks[k.which], fmt.Sprintf("rank %d", k.which)
}

// parts returns the agents of the job, and its ranks by number.
func (d *raided) parts() (agents []int, ranks map[int]int) {
	ranks = map[int]int{}
	for _, pid := range childrenOf(d.cmd.Process.Pid) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); !bytes.Contains(line,
			[]byte(remote.LocalFlag)) {
			continue // not an agent yet, or a probe of the kernel
		}
		agents = append(agents, pid)
		d.seen.add(pid)
		for _, child := range childrenOf(pid) {
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
			if _, rest, ok := bytes.Cut(data, []byte("\x00GOMPI_RANK=")); ok {
				var rank int
				fmt.Sscan(string(rest), &rank)
				ranks[rank] = child
			}
		}
	}
	return agents, ranks
}

// left returns the processes of the job that there still are.
func (d *raided) left() (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if data, _ := os.ReadFile(dir + "/environ"); bytes.Contains(data, []byte(d.mark+"\x00")) &&
			lives(atoi(d.t, filepath.Base(dir))) {
			line, _ := os.ReadFile(dir + "/cmdline")
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// forGoodTime is the time limit of a job of which an agent is stopped for good.
const forGoodTime = 10 * time.Second

// endTime is how long a job, or its rest, may take to end after the last strike.
func (d *raided) endTime() time.Duration {
	if d.forGood {
		return 30*time.Second + forGoodTime
	}
	return 30 * time.Second
}

// outcome waits for the end of the job and checks the result.
func (d *raided) outcome(out *bytes.Buffer) {
	defer func() {
		if d.failed {
			text, _ := os.ReadFile(d.output.Name())
			d.t.Logf("%v\nstruck: %q\nit said:\n%s\nto repeat it: go test ./mpirun -count=1 -run TestStressStrikesAtRandom -args -strikes %d", d.raid, d.hit, text, d.seed)
		}
	}()
	select {
	case <-d.ended:
	case <-time.After(d.endTime()):
		d.errorf("the job has not ended %v after the last strike: %q", d.endTime(), d.left())
		d.cmd.Process.Signal(syscall.SIGABRT)
		<-d.ended
	}
	d.awaitNone()
	files, err := os.ReadDir(d.dir)
	shared, _ := filepath.Glob("/dev/shm/*gompi*")           // the memory of a job has no name
	shared = slices.DeleteFunc(shared, func(f string) bool { // that other tests' scripts record meanwhile
		return strings.HasPrefix(filepath.Base(f), "gompi-error-")
	})
	if err != nil || len(files)+len(shared) > 0 {
		d.errorf("files are left: %v, %v, %v", files, shared, err)
	}
	text, _ := os.ReadFile(d.output.Name())
	first := firstLine(string(text))
	status := d.cmd.ProcessState.ExitCode()
	for _, end := range d.ends() {
		if status == end.status && regexp.MustCompile(end.first).MatchString(first) {
			return
		}
	}
	d.errorf("status %d and the first line %q: want one of %+v; output %q", status, first, d.ends(), out)
}

// awaitNone waits until no process of the job is left.
func (d *raided) awaitNone() {
	for deadline := time.Now().Add(d.endTime()); ; time.Sleep(5 * time.Millisecond) {
		left := d.left()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			d.errorf("left: %q", left)
			return
		}
	}
}

// firstLine returns the first of gompirun's own lines.
func firstLine(output string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "gompirun: ") && !strings.Contains(line, "agents are up, waiting for") {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// An end is one that a job may come to.
type end struct {
	status int
	first  string // pattern of gompirun's first line
}

// ends returns the ends that the struck processes allow.
func (d *raided) ends() []end {
	var all []end
	for _, hit := range d.hit {
		who, signal, _ := strings.Cut(hit, " ")
		if who == "rank" {
			var rank string
			rank, signal, _ = strings.Cut(signal, " ")
			who += " " + rank
		}
		switch {
		case signal == syscall.SIGSTOP.String() && (who != "agent" || !d.forGood):
		case strings.HasPrefix(who, "rank"):
			number := map[string]int{"killed": 9, "terminated": 15}[signal]
			all = append(all, end{128 + number, fmt.Sprintf("^gompirun: %s on [a-z0-9.]+ was killed by signal %d ",
				who, number)})
		case who == "agent":
			all = append(all, end{125, `^gompirun: ([a-z0-9.]+: the agent |the agent on )`})
			if d.forGood {
				all = append(all, end{statusTimeout, `^gompirun: time limit of `})
			}
		case signal == syscall.SIGKILL.String():
			all = append(all, end{-1, ``})
		case signal == syscall.SIGINT.String():
			all = append(all, end{130, `^gompirun: interrupted`})
		case signal == syscall.SIGTERM.String():
			all = append(all, end{143, `^gompirun: ended by signal 15 `})
		case signal == syscall.SIGHUP.String():
			all = append(all, end{129, `^gompirun: ended by signal 1 `})
		}
	}
	if !d.deadly {
		all = append(all, end{0, `^$`})
	}
	return all
}
