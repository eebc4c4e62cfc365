// Package attach is gompirun attach RANK, which runs a debugger on a rank of a job that
// runs already. Every gompirun listens on an abstract socket, named after its user and
// job, for the question where a rank is: so nothing is left behind in a file system that
// could be out of date. Only processes of the same user get an answer.
package attach

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"gompi/internal/sockets"
)

// answerTime is how long a launcher may take to answer.
const answerTime = 10 * time.Second

// askers is how many may be asking at once.
const askers = 64

// A Whereabouts is where a rank is, and how to get there.
type Whereabouts struct {
	Err   string   `json:",omitempty"`
	Host  string   `json:",omitempty"`
	PID   int      `json:",omitempty"`
	Login []string `json:",omitempty"` // what to put before a command to run it there
	About string   `json:",omitempty"` // the job
}

// AboutJob, in place of a rank, asks about the job.
const AboutJob = -1

// A Question is a process that wants to know where a rank is, or about the job.
type Question struct {
	Rank   int
	answer chan<- Whereabouts
}

// Ask returns a question of this process's own, and where its answer comes.
func Ask(rank int) (Question, <-chan Whereabouts) {
	answer := make(chan Whereabouts, 1)
	return Question{rank, answer}, answer
}

// Answer answers q, once. It does not block.
func (q Question) Answer(w Whereabouts) { q.answer <- w }

// SocketPrefix begins the names of the sockets of this user's launchers; the job's id
// follows.
func SocketPrefix() string { return fmt.Sprintf("@gompirun-%d-", os.Geteuid()) }

// A Server brings the questions of other processes to a job.
type Server struct {
	Questions <-chan Question // of which each is to be answered

	questions chan Question
	done      chan struct{} // closed when questions are not taken any more
	socket    net.Listener  // nil if there is none
}

// Serve lets other processes ask about a job, until Close. Without a socket there are no
// questions, and the job runs all the same.
func Serve(job string) *Server {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: SocketPrefix() + job, Net: "unix"})
	if err != nil {
		return &Server{done: make(chan struct{})}
	}
	return serve(l)
}

func serve(l net.Listener) *Server {
	s := &Server{questions: make(chan Question), done: make(chan struct{}), socket: l}
	s.Questions = s.questions
	d := sockets.Acceptor{MaxPending: askers, Timeout: answerTime, Authenticate: s.authenticate}
	go d.Serve(l) // until l is closed
	return s
}

// Close ends the service, once. Questions that have no answer get none.
func (s *Server) Close() {
	close(s.done)
	if s.socket != nil {
		s.socket.Close()
	}
}

// authenticate reads the question of a process of this user's.
func (s *Server) authenticate(conn net.Conn) func() {
	var rank int
	if caller, ok := conn.(*net.UnixConn); !ok || sockets.SameUserConn(caller) != nil {
		return nil
	}
	if _, err := fmt.Fscanln(conn, &rank); err != nil {
		return nil
	}
	return func() { s.answer(conn, rank) } // at most for answerTime
}

func (s *Server) answer(conn net.Conn, rank int) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTime))
	q, answer := Ask(rank)
	select {
	case s.questions <- q:
	case <-s.done:
		return
	}
	select {
	case w := <-answer:
		json.NewEncoder(conn).Encode(w)
	case <-s.done:
	case <-time.After(answerTime):
	}
}
