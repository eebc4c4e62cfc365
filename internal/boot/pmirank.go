package boot

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/rank0"
	"gompi/internal/env"
	"gompi/internal/sockets"
)

// A pmiRank is this process in a job of a PMI-1 launcher: hydra's mpiexec, srun --mpi=pmi2, Flux
// and others. gompi uses little of PMI: rank 0 puts its contact, all ranks meet in one barrier, and
// the rest goes over rank 0's server.
type pmiRank struct {
	conn       net.Conn
	in         *bufio.Reader
	rank, size int
	program    int    // index among the programs of the launcher's command line
	name       string // of the job's key-value space
}

const (
	contactKey = "gompi-rank0"
	// finalizeTime bounds the launcher's answer to a goodbye.
	finalizeTime = 5 * time.Second
)

// pmiVisible reports whether a launcher offers PMI-1. The descriptor may be stale, after a
// wrapper's close.
func pmiVisible() bool { return os.Getenv(pmi.EnvPort) != "" || pmiDescriptor() >= 0 }

// pmiDescriptor returns the inherited socket, or -1. pmiDescriptor does not open an os.File: the
// garbage collector would close the descriptor, and by then the number may be another file's.
func pmiDescriptor() int {
	fd := env.FD(pmi.EnvFD)
	st, err := os.Stat(fmt.Sprintf("/dev/fd/%d", fd))
	if fd < 0 || err != nil || st.Mode()&os.ModeSocket == 0 {
		return -1
	}
	return fd
}

// openPMI joins the job over PMI-1.
func openPMI(ctx context.Context) (Boot, error) {
	p, err := dialPMI(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.conn.SetDeadline(time.Unix(1, 0)) })
	b, err := p.open(ctx)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.conn.Close()
		return nil, err
	}
	return b, nil
}

// dialPMI connects to the launcher. dialPMI removes the variables, since children of this process
// are not this rank.
func dialPMI(ctx context.Context) (*pmiRank, error) {
	p := &pmiRank{rank: -1}
	if fd := pmiDescriptor(); fd >= 0 {
		f := os.NewFile(uintptr(fd), "pmi")
		var err error
		p.conn, err = net.FileConn(f)
		f.Close() // FileConn has a duplicate, which children do not inherit
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pmi.EnvFD, err)
		}
		p.rank, _ = env.Int(pmi.EnvRank)
		p.size, _ = env.Int(pmi.EnvSize)
	} else {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", os.Getenv(pmi.EnvPort))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pmi.EnvPort, err)
		}
		p.conn = conn
	}
	sockets.NoteConn(p.conn)
	p.in = bufio.NewReaderSize(p.conn, pmi.MaxLine)
	id := os.Getenv(pmi.EnvID)
	for _, name := range []string{pmi.EnvFD, pmi.EnvPort, pmi.EnvID} {
		os.Unsetenv(name)
	}
	if p.rank < 0 {
		return p, p.introduce(id)
	}
	return p, nil
}

// introduce sends the id of this process over TCP, and receives its rank and size.
func (p *pmiRank) introduce(id string) error {
	if err := p.write(pmi.New("initack", "pmiid", id)); err != nil {
		return err
	}
	if _, err := p.read("initack"); err != nil {
		return err
	}
	for range 3 { // size, rank, debug
		m, err := p.read("set")
		if err != nil {
			return err
		}
		for name, to := range map[string]*int{"rank": &p.rank, "size": &p.size} {
			if v := m.Get(name); v != "" {
				if *to, err = strconv.Atoi(v); err != nil {
					return fmt.Errorf("PMI: %s %q: want a number", name, v)
				}
			}
		}
	}
	return nil
}

func (p *pmiRank) write(m *pmi.Command) error {
	if _, err := p.conn.Write(m.Append(nil)); err != nil {
		return fmt.Errorf("PMI: %s: %w", m.Cmd, err)
	}
	return nil
}

// read reads an answer. Its command must be want.
func (p *pmiRank) read(want string) (*pmi.Command, error) {
	line, err := p.in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("PMI: waiting for %s: %w", want, err)
	}
	m, err := pmi.Parse(line)
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
func (p *pmiRank) ask(answer, cmd string, args ...string) (*pmi.Command, error) {
	if err := p.write(pmi.New(cmd, args...)); err != nil {
		return nil, err
	}
	return p.read(answer)
}

// open meets the other ranks.
func (p *pmiRank) open(ctx context.Context) (Boot, error) {
	if _, err := p.ask("response_to_init", "init", "pmi_version", "1", "pmi_subversion", "1"); err != nil {
		return nil, err
	}
	if p.size < 1 || p.rank < 0 || p.rank >= p.size {
		return nil, fmt.Errorf("PMI: rank %d of %d: want a rank from 0 to one less than the size", p.rank, p.size)
	}
	if p.size == 1 {
		_, err := p.ask("finalize_ack", "finalize")
		p.conn.Close()
		return Alone(), err
	}
	m, err := p.ask("my_kvsname", "get_my_kvsname")
	if err != nil {
		return nil, err
	}
	p.name = m.Get("kvsname")
	if m, err := p.ask("appnum", "get_appnum"); err == nil { // a launcher of one program may not know the request
		p.program, _ = strconv.Atoi(m.Get("appnum"))
	}
	s, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	s.info.Program = p.program
	leave := s.leave
	s.leave = func() error { leave(); return p.finalize() }
	s.abort = p.abort
	return s, nil
}

// connect connects to the server of rank 0, which rank 0 starts.
func (p *pmiRank) connect(ctx context.Context) (*client, error) {
	if p.rank == 0 {
		local := os.Getenv(env.PMILocalSize) == strconv.Itoa(p.size)
		ln, err := listen(local)
		if err != nil {
			return nil, err
		}
		_, secret := NewJob()
		return lead(ctx, p.size, secret, ln, func() error {
			t := rank0.ContactOf(ln, secret, local)
			if _, err := p.ask("put_result", "put", "kvsname", p.name, "key", contactKey, "value", t.String()); err != nil {
				return err
			}
			return p.barrier()
		}, func() {})
	}
	if err := p.barrier(); err != nil {
		return nil, err
	}
	m, err := p.ask("get_result", "get", "kvsname", p.name, "key", contactKey)
	if err != nil {
		return nil, fmt.Errorf("rank 0 has left no way to reach it: is it a program of gompi, too? %w", err)
	}
	t, err := rank0.ParseContact(m.Get("value"))
	if err != nil {
		return nil, err
	}
	at, err := t.Endpoints()
	if err != nil {
		return nil, err
	}
	return follow(ctx, p.rank, func(context.Context) ([32]byte, [][]string, error) { return t.Secret, at, nil })
}

func (p *pmiRank) barrier() error {
	_, err := p.ask("barrier_out", "barrier_in")
	return err
}

// finalize notifies the launcher that this process ends on purpose.
func (p *pmiRank) finalize() error {
	defer p.conn.Close()
	p.conn.SetDeadline(time.Now().Add(finalizeTime))
	_, err := p.ask("finalize_ack", "finalize")
	return err
}

// abort asks the launcher to end the job. There is no answer.
func (p *pmiRank) abort(code int, reason string) error {
	p.conn.SetWriteDeadline(time.Now().Add(finalizeTime))
	return p.write(pmi.New("abort", "exitcode", strconv.Itoa(code), "message", reason[:min(len(reason), pmi.MaxValue)]))
}
