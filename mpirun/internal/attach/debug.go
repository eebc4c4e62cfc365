package attach

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

	"gompi/internal/sockets"
	"gompi/mpirun/internal/remote"
)

// Debug becomes a debugger on a rank, wherever it runs: the command that is given, or, if
// it is "", one that is found there. job is the id of the rank's job, "" for the only one
// of this user on this machine. Debug returns if it fails.
func Debug(rank int, job, debugger string) error {
	w, err := findRank(rank, job)
	if err != nil {
		return err
	}
	argv := remote.Terminal(w.Login, debuggerScript(debugger, w.PID))
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "gompirun: rank %d is process %d on %s\n", rank, w.PID, w.Host)
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
func findRank(rank int, job string) (Whereabouts, error) {
	name, err := jobSocket(job)
	if err != nil {
		return Whereabouts{}, err
	}
	w, err := ask(name, rank)
	if err != nil {
		return w, fmt.Errorf("gompirun does not say where rank %d is: %w", rank, err)
	}
	if w.Err != "" {
		return w, errors.New(w.Err)
	}
	return w, nil
}

// errOtherUser means that a socket with our prefix belongs to another user.
var errOtherUser = errors.New("another user's socket")

// errUnreachable means that a socket takes no connection: it is not listened to, or it
// has as many waiting as it takes.
var errUnreachable = errors.New("no connection to the job")

// ask asks the launcher behind a socket where a rank is, or about the job.
func ask(name string, rank int) (w Whereabouts, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return w, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer conn.Close()
	if sockets.SameUserConn(conn) != nil {
		return w, errOtherUser
	}
	conn.SetDeadline(time.Now().Add(answerTime))
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
		job, ok := strings.CutPrefix(fields[7], SocketPrefix())
		listens := fields[3] == "00010000"
		if !ok || !listens || wanted != "" && wanted != job {
			continue
		}
		w, err := ask(fields[7], AboutJob)
		if errors.Is(err, errOtherUser) || errors.Is(err, errUnreachable) {
			continue // any process may take any name, and refuse connections
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
	return "", errors.New("no gompirun of yours runs on this machine: type it where the job was started")
}
