package pmi

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/boot/wire"
)

// Callbacks connect a Server with its clients and the launcher. They do not block.
type Callbacks interface {
	Answer(c *Client, line []byte)
	Fence(puts []string)                      // all clients are in the barrier and have put these keys and values
	Fail(c *Client, text string)              // the job must end because of c
	Abort(c *Client, code int, reason string) // c wants the job to end
}

// A Server answers the requests of the ranks of one host, which meet over it. A value can be got
// after the barrier that follows its put. Only one goroutine uses a Server. The zero Server has no
// clients.
type Server struct {
	Callbacks Callbacks
	JobID     string
	Size      int        // of the job
	Placement []wire.Run // of its ranks, in rank order
	Clients   []*Client

	all     map[string]string
	puts    []string // since the last barrier: keys and values in turn
	waiting int      // clients in the barrier
	mixed   bool     // some ranks of this host run on gompi
	absent  []int    // ranks of the job that ended without joining
}

// A Client is a rank, which may never send anything.
type Client struct {
	Rank    int
	Program int

	state   State
	waiting bool // in the barrier
	passed  bool // has left a barrier
	spawn   spawnRequest
}

// A State is a client's progress from init to finalize.
type State uint8

// The states.
const (
	Silent State = iota // has sent no request
	Initialized
	Finalized
)

// State returns c's progress.
func (c *Client) State() State { return c.state }

// A spawnRequest is the progress in reading a request to start more processes: a block of lines for
// each of several programs.
type spawnRequest struct {
	open       bool
	block, all string // the number of the block, and of blocks
}

// maxPuts bounds the keys and values of one host between two barriers.
const maxPuts = 1 << 20

func (s *Server) answer(c *Client, cmd string, args ...string) {
	s.Callbacks.Answer(c, New(cmd, args...).Append(nil))
}

// Serve obeys one line of client c. An error means that the line is no PMI-1.
func (s *Server) Serve(c *Client, line string) error {
	if c.spawn.open || strings.HasPrefix(line, "mcmd=") {
		if c.spawn.whole(line) {
			s.refuse(c, "spawn_result", "gompirun starts no further processes for a running job")
		}
		return nil
	}
	m, err := Parse([]byte(line))
	if err != nil {
		return err
	}
	switch m.Cmd {
	case "init":
		c.state = Initialized
		s.answer(c, "response_to_init", "rc", "0", "pmi_version", "1", "pmi_subversion", "1")
	case "get_maxes":
		s.answer(c, "maxes", "rc", "0", "kvsname_max", strconv.Itoa(MaxName),
			"keylen_max", strconv.Itoa(MaxKey), "vallen_max", strconv.Itoa(MaxValue))
	case "get_appnum":
		s.answer(c, "appnum", "rc", "0", "appnum", strconv.Itoa(c.Program))
	case "get_my_kvsname":
		s.answer(c, "my_kvsname", "rc", "0", "kvsname", s.kvsName())
	case "get_universe_size":
		s.answer(c, "universe_size", "rc", "0", "size", strconv.Itoa(s.Size))
	case "put":
		s.put(c, m)
	case "get":
		s.get(c, m)
	case "barrier_in":
		s.enterBarrier(c)
	case "finalize":
		c.state = Finalized
		s.answer(c, "finalize_ack", "rc", "0")
	case "abort":
		s.abort(c, m)
	case "publish_name", "unpublish_name", "lookup_name":
		s.refuse(c, strings.TrimSuffix(m.Cmd, "_name")+"_result", "gompirun has no name service")
	default:
		s.refuse(c, m.Cmd+"_result", "gompirun does not know this request")
	}
	return nil
}

// whole takes a line and reports whether the request ends with it.
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

func (s *Server) kvsName() string { return "kvs_" + s.JobID }

// refuse answers that a request failed, and why.
func (s *Server) refuse(c *Client, cmd, why string) { s.answer(c, cmd, "rc", "-1", "msg", why) }

func (s *Server) put(c *Client, m *Command) {
	key, value := m.Get("key"), m.Get("value")
	switch {
	case m.Get("kvsname") != s.kvsName():
		s.refuse(c, "put_result", "no such kvsname")
	case key == "" || len(key) > MaxKey || value == "" || len(value) > MaxValue:
		s.refuse(c, "put_result", "key or value empty or too long")
	case len(s.puts) >= maxPuts:
		s.refuse(c, "put_result", "too many puts without a barrier")
	case strings.HasPrefix(key, "PMI_"):
		s.refuse(c, "put_result", "keys that begin with PMI_ are reserved")
	default:
		s.puts = append(s.puts, key, value)
		s.answer(c, "put_result", "rc", "0")
	}
}

func (s *Server) get(c *Client, m *Command) {
	key := m.Get("key")
	value := s.all[key]
	if key == MappingKey {
		value = Mapping(s.Placement)
	}
	if value == "" || m.Get("kvsname") != s.kvsName() {
		s.answer(c, "get_result", "rc", "1", "msg", "key_not_found")
		return
	}
	s.answer(c, "get_result", "rc", "0", "value", value)
}

// enterBarrier notes that c is in the barrier. With the last client of the host, it notifies the
// launcher.
func (s *Server) enterBarrier(c *Client) {
	if c.waiting {
		return
	}
	c.waiting = true
	s.waiting++
	s.refuseMixture()
	if s.waiting == len(s.Clients) {
		s.Callbacks.Fence(s.puts)
		s.puts = nil
	}
	s.release()
}

// Fenced lets all clients out of the barrier. all has the keys and values put on all hosts.
func (s *Server) Fenced(all []string) {
	if s.all == nil {
		s.all = make(map[string]string, len(all)/2)
	}
	for i := 0; i+1 < len(all); i += 2 {
		s.all[all[i]] = all[i+1]
	}
	s.leaveBarrier("0")
}

// Mixed notes that a rank of this host runs on gompi.
func (s *Server) Mixed() {
	s.mixed = true
	s.refuseMixture()
}

// refuseMixture ends a job in which some ranks meet over PMI-1 and others on gompi: each side would
// wait for the other.
func (s *Server) refuseMixture() {
	if s.waiting > 0 && s.mixed {
		s.Callbacks.Fail(s.firstWaiting(), "waits in MPI_Init of its own MPI library, but other ranks of the job "+
			"run on gompi, which it cannot reach: -mpi-lib gompi has all run on gompi")
	}
}

// firstWaiting returns the first client in the barrier, or nil.
func (s *Server) firstWaiting() *Client {
	for _, c := range s.Clients {
		if c.waiting {
			return c
		}
	}
	return nil
}

func (s *Server) leaveBarrier(rc string) {
	s.waiting = 0
	for _, c := range s.Clients {
		if c.waiting {
			c.waiting, c.passed = false, true
			s.answer(c, "barrier_out", "rc", rc)
		}
	}
}

// Absent notes that a rank of the job has ended well and will never join.
func (s *Server) Absent(rank int) {
	s.absent = append(s.absent, rank)
	s.release()
}

// release ends a barrier that a rank of the job will never enter, because it has ended. Old clients
// take any answer for success, so the job is ended, too.
func (s *Server) release() {
	if len(s.absent) == 0 || s.waiting == 0 {
		return
	}
	c, where := s.firstWaiting(), "MPI_Init"
	if c.passed {
		where = "a barrier of PMI"
	}
	s.Callbacks.Fail(c, fmt.Sprintf("waits in %s for rank %d, which has ended with status 0", where, s.absent[0]))
	s.leaveBarrier("-1")
}

// abort ends the job at a client's request.
func (s *Server) abort(c *Client, m *Command) {
	code, err := strconv.Atoi(m.Get("exitcode"))
	if err != nil {
		code = 1
	}
	s.Callbacks.Abort(c, int(int32(code)), m.Get("message"))
}

// Doing describes a client's state. Its calls are another library's.
func (c *Client) Doing() string {
	switch {
	case c.state == Finalized:
		return "has called MPI_Finalize"
	case c.waiting && !c.passed:
		return "is in MPI_Init and waits for other ranks"
	case c.waiting:
		return "waits for other ranks in a barrier of PMI"
	}
	return "runs with another MPI library, whose calls cannot be seen"
}
