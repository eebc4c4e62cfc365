package mpirun

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"gompi/internal/accept"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/remote"
)

// gompirun -attach RANK runs a debugger on a rank of a job that runs already.
// Every gompirun listens on an abstract socket, named after its user and job,
// for the question where a rank is: so nothing is left behind in a file system
// that could be out of date. Only processes of the same user get an answer.

// attachTime is how long a launcher may take to answer.
const attachTime = 10 * time.Second

// askers is how many may be asking at once.
const askers = 64

// A whereabouts is where a rank is, and how to get there.
type whereabouts struct {
	Err   string   `json:",omitempty"`
	Host  string   `json:",omitempty"`
	PID   int      `json:",omitempty"`
	Login []string `json:",omitempty"` // what to put before a command to run it there
	About string   `json:",omitempty"` // the job
}

// aboutJob asks about the job, where else a rank stands.
const aboutJob = -1

// about describes the job for who has to tell it from others.
func (j *job) about() string {
	var programs []string
	for _, p := range j.spec.Programs {
		programs = append(programs, fmt.Sprintf("%.80q", strings.Join(p.Argv, " ")))
	}
	return fmt.Sprintf("-np %d %s, for %v", len(j.plan.Ranks), strings.Join(programs, " : "), time.Since(j.begun).Round(time.Second))
}

// A question is a process that wants to know where a rank is, or about the job.
type question struct {
	rank   int
	answer chan<- whereabouts
}

// questionPrefix begins the names of the sockets of a user's launchers.
func questionPrefix() string { return fmt.Sprintf("@gompirun-%d-", os.Geteuid()) }

// hearQuestions lets other processes ask this job. Without a socket there are no
// questions, which harms nobody.
func (j *job) hearQuestions() (stop func()) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: questionPrefix() + j.id, Net: "unix"})
	if err != nil {
		return func() {}
	}
	go j.answerOn(l) // until l is closed
	return func() { l.Close() }
}

// answerOn answers the questions of whoever connects to l, until it is closed.
func (j *job) answerOn(l net.Listener) {
	d := accept.Door{Strangers: askers, Time: attachTime, Greet: func(conn net.Conn) func() {
		var rank int
		if caller, ok := conn.(*net.UnixConn); !ok || !ownPeer(caller) {
			return nil
		}
		if _, err := fmt.Fscanln(conn, &rank); err != nil {
			return nil
		}
		return func() { j.answer(conn, rank) } // at most for attachTime
	}}
	d.Serve(l)
}

func (j *job) answer(conn net.Conn, rank int) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(attachTime))
	answer := make(chan whereabouts, 1)
	select {
	case j.questions <- question{rank, answer}:
	case <-j.done:
		return
	}
	select {
	case w := <-answer:
		json.NewEncoder(conn).Encode(w)
	case <-j.done:
	case <-time.After(attachTime):
	}
}

// askedFor passes a question on to the agent of the rank's host, which knows which
// process has joined in the rank's place.
func (j *job) askedFor(q question) {
	if q.rank == aboutJob {
		q.answer <- whereabouts{About: j.about()}
		return
	}
	for _, l := range j.links {
		for _, r := range l.ranks {
			if r == q.rank && !l.drained {
				l.asking = append(l.asking, q)
				l.send(&ctl.Ask{})
				return
			}
		}
	}
	q.answer <- whereabouts{Err: fmt.Sprintf("rank %d does not run: the job has %d ranks", q.rank, len(j.plan.Ranks))}
}

// tellWhere answers the questions about ranks of l.
func (j *job) tellWhere(l *link, m *ctl.Doing) {
	for _, q := range l.asking {
		w := whereabouts{Err: fmt.Sprintf("rank %d on %s has ended", q.rank, l.host)}
		for _, r := range m.Ranks {
			if r.Rank == q.rank {
				w = whereabouts{Host: l.host, PID: r.PID, Login: l.agent.Login}
				if !l.here() && w.Login == nil {
					w.Err = fmt.Sprintf("rank %d is process %d on %s, where gompirun did not log in: run the debugger there", q.rank, r.PID, l.host)
				}
			}
		}
		q.answer <- w
	}
	l.asking = nil
}

// runDebugger becomes the debugger that a names, or one that is found,
// on the rank, wherever it runs.
func runDebugger(a cmdline.Attach) error {
	w, err := findRank(a)
	if err != nil {
		return err
	}
	argv := remote.Terminal(w.Login, debuggerScript(a.Debugger, w.PID))
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "gompirun: rank %d is process %d on %s\n", a.Rank, w.PID, w.Host)
	return syscall.Exec(path, argv, os.Environ())
}

// debuggerScript is what runs the debugger on the rank's host: the user's, or for Go
// programs dlv, if it is there, or gdb.
func debuggerScript(debugger string, pid int) string {
	if debugger != "" {
		return fmt.Sprintf("exec %s %d", debugger, pid)
	}
	return fmt.Sprintf(`if grep -qs "Go buildinf:" /proc/%[1]d/exe && command -v dlv >/dev/null; then exec dlv attach %[1]d; fi; if command -v gdb >/dev/null; then exec gdb -p %[1]d; fi; echo "gompirun: neither dlv nor gdb is in PATH; want -debugger CMD" >&2; exit 127`, pid)
}

// findRank asks the launcher of the job where the rank is.
func findRank(a cmdline.Attach) (whereabouts, error) {
	name, err := jobSocket(a.Job)
	if err != nil {
		return whereabouts{}, err
	}
	w, err := ask(name, a.Rank)
	if err != nil {
		return w, fmt.Errorf("gompirun does not say where rank %d is: %w", a.Rank, err)
	}
	if w.Err != "" {
		return w, errors.New(w.Err)
	}
	return w, nil
}

// errStranger means that a socket with a name of ours is not ours.
var errStranger = errors.New("another user's socket")

// errUnreachable means that nobody can connect to a socket: it is not listened to, or it
// has as many waiting as it takes.
var errUnreachable = errors.New("no connection to the job")

// ask asks the launcher behind a socket where a rank is, or about the job.
func ask(name string, rank int) (w whereabouts, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return w, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer conn.Close()
	if !ownPeer(conn) {
		return w, errStranger
	}
	conn.SetDeadline(time.Now().Add(attachTime))
	fmt.Fprintln(conn, rank)
	return w, json.NewDecoder(conn).Decode(&w)
}

// jobSocket returns the name of the socket of the job that is meant: the only one
// of this user on this machine, or the one that -job names, wanted.
func jobSocket(wanted string) (string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return "", err
	}
	defer f.Close()
	var names, jobs, lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 8 {
			continue
		}
		job, ok := strings.CutPrefix(fields[7], questionPrefix())
		listens := fields[3] == "00010000"
		if !ok || !listens || wanted != "" && wanted != job {
			continue
		}
		w, err := ask(fields[7], aboutJob)
		if errors.Is(err, errStranger) || errors.Is(err, errUnreachable) {
			continue // anybody may take any name, and let nobody connect
		}
		names, jobs, lines = append(names, fields[7]), append(jobs, job), append(lines, fmt.Sprintf("\n  %q: %s", job, w.About))
	}
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", fmt.Errorf("%d jobs of yours run here: want -job with one of%s", len(jobs), strings.Join(lines, ""))
	case wanted != "":
		return "", fmt.Errorf("-job %q: no gompirun of yours runs that on this machine", wanted)
	}
	return "", errors.New("no gompirun of yours runs on this machine: -attach wants to be called where the job was started")
}
