package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"gompi/internal/sockets"
)

// askers is the most simultaneous requests.
const askers = 64

// A Server passes other processes' questions on to a job. A nil *Server has none.
type Server struct {
	questions chan Question
	socket    net.Listener
	path      string
	tail      *Tail
	end       End
	ended     chan struct{} // closed when end is known

	mu   sync.Mutex
	over bool           // the process does not wait for new requests
	owed sync.WaitGroup // answers to earlier requests
}

// Serve lets other processes ask about the job with an id and about its output, until End. After
// an error the job runs without.
func Serve(id string, tail *Tail) (*Server, error) {
	var errs []error
	for _, folder := range folders(os.Geteuid()) {
		err := os.Mkdir(folder, 0o700)
		if err == nil || errors.Is(err, os.ErrExist) {
			err = check(folder, os.Geteuid())
		}
		path := filepath.Join(folder, id+ending)
		var l *net.UnixListener
		if err == nil {
			l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		}
		if err == nil {
			return serve(l, path, tail), nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func serve(l net.Listener, path string, tail *Tail) *Server {
	s := &Server{questions: make(chan Question), socket: l, path: path, tail: tail, ended: make(chan struct{})}
	a := sockets.Acceptor{MaxPending: askers, Timeout: answerTime, Authenticate: s.authenticate}
	go a.Serve(l) // until l is closed
	return s
}

// Questions returns the questions, all of which need an answer.
func (s *Server) Questions() <-chan Question {
	if s == nil {
		return nil
	}
	return s.questions
}

// End sends the job's end to the clients that wait for it, and ends the service. End returns when
// all answers of the job are written, or after a second, so that the process may end.
func (s *Server) End(e End) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.socket.Close() // and removes it
	s.end = e
	close(s.ended)
	told := make(chan struct{})
	go func() { // until they have read it, or the process ends
		s.owed.Wait()
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
}

// authenticate reads the request of a process of this user, or of root.
func (s *Server) authenticate(conn net.Conn) func() {
	caller, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	if user, _, err := sockets.Peer(caller); err != nil || user != os.Geteuid() && user != 0 {
		return nil
	}
	method, target, err := readRequest(conn)
	if err != nil {
		return nil
	}
	done := s.expect()
	if target == "/end" {
		io.WriteString(conn, interim) // a client that fails to read this gets no end either
	}
	return func() {
		defer conn.Close()
		defer done()
		if target == "/end" && !s.awaitEnd(conn) {
			return
		}
		if follow := target == "/output/follow"; follow || target == "/output" {
			s.stream(conn, follow)
			return
		}
		a := s.answer(method, target)
		conn.SetDeadline(time.Now().Add(answerTime))
		writeResponse(conn, a)
	}
}

// awaitEnd waits for the end of the job. The result is false if the client hangs up first.
func (s *Server) awaitEnd(conn net.Conn) bool {
	select {
	case <-s.ended:
		return true
	case <-hungUp(conn):
		return false
	}
}

// hungUp returns a channel that is closed when the client hangs up, or conn is closed.
func hungUp(conn net.Conn) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, conn)
		close(gone)
	}()
	return gone
}

// expect makes End wait until done is called.
func (s *Server) expect() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return func() {}
	}
	s.owed.Add(1)
	return s.owed.Done
}

// A response is the answer to a request.
type response struct {
	status string
	kind   string
	body   []byte
}

const usage = "want GET /job, /rank/N, /metrics, /output or /end, or POST /signal/TERM\n"

// answer returns the job's answer to a request.
func (s *Server) answer(method, target string) response {
	rank, ofRank := strings.CutPrefix(target, "/rank/")
	name, isSignal := strings.CutPrefix(target, "/signal/")
	switch {
	case method == "GET" && target == "/job":
		return ask(s, func(r Reply[Job]) Question { return Describe{r} }, s.described)
	case method == "GET" && target == "/metrics":
		return ask(s, func(r Reply[Job]) Question { return Describe{r} }, func(j Job) response {
			return response{"200 OK", "text/plain; version=0.0.4; charset=utf-8", Metrics([]Job{j})}
		})
	case method == "GET" && target == "/end":
		<-s.ended
		return inJSON(s.end)
	case method == "GET" && ofRank:
		n, err := strconv.Atoi(rank)
		if err != nil || n < 0 {
			return response{"404 Not Found", "text/plain", fmt.Appendf(nil, "%q: want a rank\n", rank)}
		}
		return ask(s, func(r Reply[Whereabouts]) Question { return WhereIs{n, r} }, inJSON)
	case method == "POST" && isSignal:
		sig, ok := Signals[name]
		if !ok {
			return response{"404 Not Found", "text/plain", fmt.Appendf(nil, "%q: want %s\n", name, SignalNames)}
		}
		return ask(s, func(r Reply[Order]) Question { return Signal{sig, r} }, inJSON)
	}
	return response{"404 Not Found", "text/plain", []byte(usage)}
}

// SignalNames lists the names of Signals, for people.
const SignalNames = "TERM, INT, HUP or KILL, which end the job, or QUIT, USR1, USR2, ALRM or WINCH"

func (s *Server) described(j Job) response {
	j.Socket = s.path
	return inJSON(j)
}

// ask asks the job, and returns its answer in form.
func ask[T any](s *Server, question func(Reply[T]) Question, form func(T) response) response {
	reply, late := NewReply[T](), time.After(answerTime)
	select {
	case s.questions <- question(reply):
	case <-s.ended:
		return gone
	case <-late:
		return busy
	}
	select {
	case v := <-reply.Answered():
		return form(v)
	case <-s.ended: // perhaps by this order
		select {
		case v := <-reply.Answered():
			return form(v)
		default:
			return gone
		}
	case <-late:
		return busy
	}
}

var (
	busy = response{"503 Service Unavailable", "text/plain", []byte("the job does not answer\n")}
	gone = response{"410 Gone", "text/plain", []byte("the job has ended\n")}
)

func inJSON[T any](v T) response {
	body, err := json.Marshal(v)
	if err != nil {
		return response{"500 Internal Server Error", "text/plain", []byte(err.Error())}
	}
	return response{"200 OK", "application/json", append(body, '\n')}
}
