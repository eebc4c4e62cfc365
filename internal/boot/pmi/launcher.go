package pmi

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"gompi/internal/env"
	"gompi/internal/sockets"
)

// finalizeTime bounds the launcher's answer to a goodbye.
const finalizeTime = 5 * time.Second

// A Launcher is the connection of this process, a rank, to a launcher that speaks PMI-1.
type Launcher struct {
	Rank, Size int // of this process
	Program    int // index among the programs of the launcher's command line

	conn net.Conn
	in   *bufio.Reader
	name string // of the job's key-value space
}

// Visible reports whether a launcher offers PMI-1. The descriptor may be stale, after a wrapper's
// close.
func Visible() bool { return os.Getenv(EnvPort) != "" || descriptor() >= 0 }

// descriptor returns the inherited socket, or -1. descriptor does not open an os.File: the garbage
// collector would close the descriptor, and by then the number may be another file's.
func descriptor() int {
	fd := env.FD(EnvFD)
	st, err := os.Stat(fmt.Sprintf("/dev/fd/%d", fd))
	if fd < 0 || err != nil || st.Mode()&os.ModeSocket == 0 {
		return -1
	}
	return fd
}

// Dial connects to the launcher. Dial removes the variables, since children of this process are not
// this rank.
func Dial(ctx context.Context) (*Launcher, error) {
	l := &Launcher{Rank: -1}
	if fd := descriptor(); fd >= 0 {
		f := os.NewFile(uintptr(fd), "pmi")
		var err error
		l.conn, err = net.FileConn(f)
		f.Close() // FileConn has a duplicate, which children do not inherit
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvFD, err)
		}
		l.Rank, _ = env.Int(EnvRank)
		l.Size, _ = env.Int(EnvSize)
	} else {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", os.Getenv(EnvPort))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvPort, err)
		}
		l.conn = conn
	}
	sockets.NoteConn(l.conn)
	l.in = bufio.NewReaderSize(l.conn, MaxLine)
	id := os.Getenv(EnvID)
	for _, name := range []string{EnvFD, EnvPort, EnvID} {
		os.Unsetenv(name)
	}
	if l.Rank < 0 {
		return l, l.introduce(id)
	}
	return l, nil
}

// introduce sends the id of this process over TCP, and receives its rank and size.
func (l *Launcher) introduce(id string) error {
	if err := l.write(New("initack", "pmiid", id)); err != nil {
		return err
	}
	if _, err := l.read("initack"); err != nil {
		return err
	}
	for range 3 { // size, rank, debug
		m, err := l.read("set")
		if err != nil {
			return err
		}
		for name, to := range map[string]*int{"rank": &l.Rank, "size": &l.Size} {
			if v := m.Get(name); v != "" {
				if *to, err = strconv.Atoi(v); err != nil {
					return fmt.Errorf("PMI: %s %q: want a number", name, v)
				}
			}
		}
	}
	return nil
}

func (l *Launcher) write(m *Command) error {
	if _, err := l.conn.Write(m.Append(nil)); err != nil {
		return fmt.Errorf("PMI: %s: %w", m.Cmd, err)
	}
	return nil
}

// read reads an answer. Its command must be want.
func (l *Launcher) read(want string) (*Command, error) {
	line, err := l.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("PMI: waiting for %s: %w", want, err)
	}
	m, err := Parse(line)
	if err != nil {
		return nil, err
	}
	if m.Cmd != want {
		return nil, fmt.Errorf("PMI: the launcher answers %.80q, want %s", line, want)
	}
	if err := m.Err(); err != nil {
		return nil, fmt.Errorf("PMI: %w", err)
	}
	return m, nil
}

// ask sends a request and returns its answer.
func (l *Launcher) ask(answer, cmd string, args ...string) (*Command, error) {
	if err := l.write(New(cmd, args...)); err != nil {
		return nil, err
	}
	return l.read(answer)
}

// Init begins the use of PMI. A job of several ranks has a key-value space, for Put and Get.
func (l *Launcher) Init() error {
	if _, err := l.ask("response_to_init", "init", "pmi_version", "1", "pmi_subversion", "1"); err != nil {
		return err
	}
	if l.Size < 1 || l.Rank < 0 || l.Rank >= l.Size {
		return fmt.Errorf("PMI: rank %d of %d: want a rank from 0 to one less than the size", l.Rank, l.Size)
	}
	if l.Size == 1 {
		return nil
	}
	m, err := l.ask("my_kvsname", "get_my_kvsname")
	if err != nil {
		return err
	}
	l.name = m.Get("kvsname")
	if m, err := l.ask("appnum", "get_appnum"); err == nil { // a launcher of one program may not know the request
		l.Program, _ = strconv.Atoi(m.Get("appnum"))
	}
	return nil
}

// Put gives all ranks a value, from the next Barrier on.
func (l *Launcher) Put(key, value string) error {
	_, err := l.ask("put_result", "put", "kvsname", l.name, "key", key, "value", value)
	return err
}

// Get returns a value that a rank has Put.
func (l *Launcher) Get(key string) (string, error) {
	m, err := l.ask("get_result", "get", "kvsname", l.name, "key", key)
	if err != nil {
		return "", err
	}
	return m.Get("value"), nil
}

// Barrier waits for all ranks.
func (l *Launcher) Barrier() error {
	_, err := l.ask("barrier_out", "barrier_in")
	return err
}

// Finalize notifies the launcher that this process ends on purpose, and closes l.
func (l *Launcher) Finalize() error {
	defer l.conn.Close()
	l.conn.SetDeadline(time.Now().Add(finalizeTime))
	_, err := l.ask("finalize_ack", "finalize")
	return err
}

// Abort asks the launcher to end the job. There is no answer.
func (l *Launcher) Abort(code int, reason string) error {
	l.conn.SetWriteDeadline(time.Now().Add(finalizeTime))
	return l.write(New("abort", "exitcode", strconv.Itoa(code), "message", reason[:min(len(reason), MaxValue)]))
}

// Interrupt ends calls of other methods, and fails later ones.
func (l *Launcher) Interrupt() { l.conn.SetDeadline(time.Unix(1, 0)) }

// Close closes l without a goodbye.
func (l *Launcher) Close() error { return l.conn.Close() }
