package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
)

// A client is a rank as programs of the MPICH family know it: they meet over
// PMI-1. Ranks of gompi have the socket too, and say nothing.
type client struct {
	fd      int // our end of its socket, -1 when closed
	in      pmi.Lines
	state   clientState
	waiting bool // in the barrier
	met     bool // has been through one
	spawn   spawnRequest
}

// A spawnRequest is how far a request to start more processes has been read: a
// block of lines for each of several programs.
type spawnRequest struct {
	open       bool
	block, all string // the number of the block, and of blocks
}

type clientState uint8

const (
	silent clientState = iota
	initialized
	finalized
)

// keyvals is what the clients of the job tell each other. What is put can be
// got after the next barrier.
type keyvals struct {
	all     map[string]string
	puts    []string // since the last barrier, keys and values in turn
	waiting int      // ranks in the barrier
}

// maxPuts bounds keys and values together, of one host between two barriers.
const maxPuts = 1 << 20

// abnormal is how long the end of a client's socket waits for the end of the
// process, which has the better reason.
const abnormal = 100 * time.Millisecond

// connectClient makes p's PMI socket and returns the rank's end of it.
func (a *agent) connectClient(p *process) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socketpair: %w", err)
	}
	p.pmi.fd = pair[0] // the rank's end blocks, as clients expect; ours is told not to at each call
	return pair[1], a.watch(p.pmi.fd, pmiEnd, p.index, unix.EPOLLIN)
}

func (a *agent) hangUpClient(p *process) {
	if p.pmi.fd >= 0 {
		unix.Close(p.pmi.fd)
		p.pmi.fd = -1
	}
}

// hearClient reads what a rank says in PMI-1, and answers.
func (a *agent) hearClient(p *process) {
	for p.pmi.fd >= 0 {
		n, _, err := unix.Recvfrom(p.pmi.fd, a.buf[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return
		}
		if err != nil || n == 0 {
			a.lostClient(p)
			return
		}
		p.pmi.in.Add(a.buf[:n])
		for {
			line, ok, err := p.pmi.in.Next()
			if err == nil && !ok {
				break
			}
			if err == nil {
				err = a.serveClient(p, string(line))
			}
			if err != nil {
				a.note("rank %d: %v", p.Rank.Rank, err)
				a.hangUpClient(p)
				return
			}
		}
	}
}

// lostClient handles the end of a client's socket. Between MPI_Init and
// MPI_Finalize it is an abnormal end, also of a process that goes on.
func (a *agent) lostClient(p *process) {
	a.hangUpClient(p)
	if p.pmi.state != initialized || p.ended || p.pidfd < 0 {
		return
	}
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int(abnormal/time.Millisecond)); n == 0 && err == nil {
		a.failClient(p, "closed its connection to gompirun without calling MPI_Finalize")
	}
}

// failClient ends the job because of p.
func (a *agent) failClient(p *process, text string) {
	a.report(&ctl.Failed{Rank: p.Rank.Rank, Code: 1, Text: text})
}

// answer sends a line to a client. There is one request at a time, so that its
// socket always has room for the answer.
func (a *agent) answer(p *process, cmd string, args ...string) error {
	line := pmi.New(cmd, args...).Append(nil)
	n, err := unix.SendmsgN(p.pmi.fd, line, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == nil && n < len(line) {
		err = unix.EAGAIN
	}
	if err == unix.EAGAIN {
		return fmt.Errorf("it does not read the answers to its PMI requests")
	}
	return nil // any other error shows when the socket is read
}

// serveClient follows one line.
func (a *agent) serveClient(p *process, line string) error {
	if p.pmi.spawn.open || strings.HasPrefix(line, "mcmd=") {
		if p.pmi.spawn.whole(line) {
			return a.refuse(p, "spawn_result", "gompirun starts no further processes for a running job")
		}
		return nil
	}
	m, err := pmi.Parse([]byte(line))
	if err != nil {
		return err
	}
	switch m.Cmd {
	case "init":
		p.pmi.state = initialized
		return a.answer(p, "response_to_init", "rc", "0", "pmi_version", "1", "pmi_subversion", "1")
	case "get_maxes":
		return a.answer(p, "maxes", "rc", "0", "kvsname_max", strconv.Itoa(pmi.MaxName),
			"keylen_max", strconv.Itoa(pmi.MaxKey), "vallen_max", strconv.Itoa(pmi.MaxValue))
	case "get_appnum":
		return a.answer(p, "appnum", "rc", "0", "appnum", strconv.Itoa(p.Program))
	case "get_my_kvsname":
		return a.answer(p, "my_kvsname", "rc", "0", "kvsname", a.kvsName())
	case "get_universe_size":
		return a.answer(p, "universe_size", "rc", "0", "size", strconv.Itoa(a.launch.Size))
	case "put":
		return a.put(p, m)
	case "get":
		return a.get(p, m)
	case "barrier_in":
		a.enterBarrier(p)
		return nil
	case "finalize":
		p.pmi.state = finalized
		return a.answer(p, "finalize_ack", "rc", "0")
	case "abort":
		a.abortClient(p, m)
		return nil
	case "publish_name", "unpublish_name", "lookup_name":
		return a.refuse(p, strings.TrimSuffix(m.Cmd, "_name")+"_result", "gompirun has no name service")
	}
	return a.refuse(p, m.Cmd+"_result", "gompirun does not know this request")
}

// whole takes a line, and reports whether the request ends with it.
func (s *spawnRequest) whole(line string) bool {
	s.open = line != "endcmd"
	if block, ok := strings.CutPrefix(line, "spawnssofar="); ok {
		s.block = block
	}
	if all, ok := strings.CutPrefix(line, "totspawns="); ok {
		s.all = all
	}
	return !s.open && s.block == s.all
}

func (a *agent) kvsName() string { return "kvs_" + a.launch.JobID }

// refuse answers that a request failed, and why.
func (a *agent) refuse(p *process, cmd, why string) error {
	return a.answer(p, cmd, "rc", "-1", "msg", why)
}

func (a *agent) put(p *process, m *pmi.Message) error {
	key, value := m.Get("key"), m.Get("value")
	switch {
	case m.Get("kvsname") != a.kvsName():
		return a.refuse(p, "put_result", "no such kvsname")
	case key == "" || len(key) > pmi.MaxKey || value == "" || len(value) > pmi.MaxValue:
		return a.refuse(p, "put_result", "key or value empty or too long")
	case len(a.pmi.puts) >= maxPuts:
		return a.refuse(p, "put_result", "too many puts without a barrier")
	case strings.HasPrefix(key, "PMI_"):
		return a.refuse(p, "put_result", "keys that begin with PMI_ are reserved")
	}
	a.pmi.puts = append(a.pmi.puts, key, value)
	return a.answer(p, "put_result", "rc", "0")
}

func (a *agent) get(p *process, m *pmi.Message) error {
	key := m.Get("key")
	value := a.pmi.all[key]
	if key == pmi.MappingKey {
		value = pmi.Mapping(a.launch.Placement)
	}
	if value == "" || m.Get("kvsname") != a.kvsName() {
		return a.answer(p, "get_result", "rc", "1", "msg", "key_not_found")
	}
	return a.answer(p, "get_result", "rc", "0", "value", value)
}

// enterBarrier notes that p is in the barrier; the last rank of the host has the
// launcher told.
func (a *agent) enterBarrier(p *process) {
	if p.pmi.waiting {
		return
	}
	p.pmi.waiting = true
	a.pmi.waiting++
	a.refuseMixture()
	if a.pmi.waiting == len(a.ranks) {
		a.report(&ctl.Fence{Puts: a.pmi.puts})
		a.pmi.puts = nil
	}
	a.releaseClients()
}

// fenced lets everybody out of the barrier.
func (a *agent) fenced(m *ctl.Fenced) {
	if a.pmi.all == nil {
		a.pmi.all = make(map[string]string, len(m.Puts)/2)
	}
	for i := 0; i+1 < len(m.Puts); i += 2 {
		a.pmi.all[m.Puts[i]] = m.Puts[i+1]
	}
	a.leaveBarrier("0")
}

// refuseMixture ends a job of which some ranks meet over PMI-1 and some as gompi's
// do: each waits for all the others.
func (a *agent) refuseMixture() {
	if a.pmi.waiting == 0 || a.cards == 0 {
		return
	}
	for _, p := range a.ranks {
		if p.pmi.waiting {
			a.failClient(p, "waits in MPI_Init for ranks that are programs of gompi: one job can have but one kind")
			return
		}
	}
}

func (a *agent) leaveBarrier(rc string) {
	a.pmi.waiting = 0
	for _, p := range a.ranks {
		if p.pmi.waiting {
			p.pmi.waiting, p.pmi.met = false, true
			if err := a.answer(p, "barrier_out", "rc", rc); err != nil {
				a.note("rank %d: %v", p.Rank.Rank, err)
				a.hangUpClient(p)
			}
		}
	}
}

// releaseClients ends a barrier to which a rank will never come: it has ended.
// Old clients take any answer for success, so the job is ended, too.
func (a *agent) releaseClients() {
	if len(a.absent) == 0 || a.pmi.waiting == 0 {
		return
	}
	for _, p := range a.ranks {
		if p.pmi.waiting {
			where := "MPI_Init"
			if p.pmi.met {
				where = "a barrier of PMI"
			}
			a.failClient(p, fmt.Sprintf("waits in %s for rank %d, which has ended with status 0", where, a.absent[0]))
			break
		}
	}
	a.leaveBarrier("-1")
}

// abortClient ends the job as a client wants it.
func (a *agent) abortClient(p *process, m *pmi.Message) {
	code, err := strconv.Atoi(m.Get("exitcode"))
	if err != nil {
		code = 1
	}
	reason := m.Get("message")
	a.report(&ctl.Abort{Rank: p.Rank.Rank, Code: int(int32(code)), Time: time.Now().UnixNano(), Reason: reason[:min(len(reason), wire.MaxText)]})
}

// doing says what can be said of a client: its calls are another library's.
func (c *client) doing() string {
	switch {
	case c.state == finalized:
		return "has called MPI_Finalize"
	case c.waiting && !c.met:
		return "is in MPI_Init and waits for other ranks"
	case c.waiting:
		return "waits for other ranks in a barrier of PMI"
	}
	return "runs with another MPI library, whose calls cannot be seen"
}
