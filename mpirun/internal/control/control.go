// Package control is the socket on which each gompirun answers questions about its job, and takes
// the order to end it: gompirun ps, top, kill and attach ask it, and curl may.
//
// # The socket
//
// It is FOLDER/ID.sock, where ID is the job's id and FOLDER is /tmp/gompi-UID, which only its user
// may enter. If there is no such folder and none can be made, as another user has taken the name,
// it is gompi in XDG_RUNTIME_DIR. That comes second because a system may remove it when its user
// logs out, and jobs run on. Only processes of the same user, and root, get an answer. What a
// gompirun that was killed has left there refuses connections; who lists the jobs removes it.
//
// # The protocol
//
// HTTP/1.1, of which a connection carries one request, without a body:
//
//	GET  /job          the job, as a Job in JSON
//	GET  /rank/N       where a rank is, as a Whereabouts in JSON
//	GET  /metrics      the job in Prometheus' text format, version 0.0.4
//	GET  /end          how the job ended, as an End in JSON, when it has; first 100 Continue
//	POST /signal/TERM  does what this signal to gompirun does; the answer is an Order in JSON
//
// The few lines of HTTP are here: package net/http would add a sixth to what gompirun sends to
// hosts that have none.
package control

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A State is what a job is doing.
type State string

// The states.
const (
	Starting State = "starting" // agents or ranks do
	Running  State = "running"
	Stalled  State = "stalled" // ranks have been in one call for longer than -stall-warning
	Ending   State = "ending"
	Silent   State = "silent" // gompirun does not answer, as one that is stopped
)

// States are all states.
var States = []State{Starting, Running, Stalled, Ending, Silent}

// A Job is what a gompirun says of its job. Times are in seconds.
type Job struct {
	ID       string   `json:"id"`               // GOMPI_JOB_ID of its first run
	Reruns   []string `json:"reruns,omitempty"` // those of the runs after it, where it was started again
	PID      int      `json:"pid"`              // of gompirun
	User     int      `json:"user"`             // its number
	Socket   string   `json:"socket"`
	Begun    float64  `json:"begun"` // since 1970
	Age      float64  `json:"age"`
	Restarts int      `json:"restarts"`
	State    State    `json:"state"`
	Why      string   `json:"why,omitempty"`   // it ends
	Since    float64  `json:"longest_wait"`    // of the ranks: for how long one has been in its call
	Programs []string `json:"programs"`        // command lines
	Size     int      `json:"size"`            // ranks, 0 before they have places
	Hosts    []string `json:"hosts"`           // that have ranks
	Lines    []string `json:"doing"`           // what ranks are in, as gompirun reports it on QUIT
	Ranks    []Rank   `json:"ranks,omitempty"` // those that run
	Counts   bool     `json:"stats"`           // the ranks count their calls
	Err      string   `json:"error,omitempty"` // why a silent job does not answer
}

// A Rank is one that runs.
type Rank struct {
	Rank     int     `json:"rank"`
	Host     string  `json:"host"`
	PID      int     `json:"pid"`
	Doing    string  `json:"doing"`          // "is in barrier() number 17"
	Site     string  `json:"at,omitempty"`   // where in the program
	Since    float64 `json:"for,omitempty"`  // how long it has been in that call
	Kept     string  `json:"kept,omitempty"` // what keeps its process from running
	CPU      float64 `json:"cpu"`            // processor time of its process
	Resident int64   `json:"resident"`       // bytes
	Recorded uint64  `json:"recorded_calls"` // collectives, and messages that waited long
	*Counts
}

// Counts are what a rank counts with -stats.
type Counts struct {
	Calls   uint64  `json:"calls"`
	Bytes   uint64  `json:"bytes"`
	InCalls float64 `json:"in_calls"`
}

// A Whereabouts is where a rank is, and how to get there.
type Whereabouts struct {
	Err   string   `json:"error,omitempty"`
	Host  string   `json:"host,omitempty"`
	PID   int      `json:"pid,omitempty"`
	Login []string `json:"login,omitempty"` // what to put before a command to run it there
}

// An Order is what becomes of a signal.
type Order struct {
	Err   string  `json:"error,omitempty"`
	Ends  bool    `json:"ends"`  // the job
	Limit float64 `json:"limit"` // how long it may take to end
}

// An End is how a job ended.
type End struct {
	Status    int    `json:"status"` // of gompirun
	LastWords string `json:"last_words"`
}

// A Question is a WhereIs, a Describe or a Signal, and is to be answered once. No answer blocks.
type Question interface{ question() }

// WhereIs asks where a rank is.
type WhereIs struct {
	Rank int
	Reply[Whereabouts]
}

// Describe asks about the job.
type Describe struct{ Reply[Job] }

// Signal orders what a signal to gompirun does. KILL kills the ranks at once.
type Signal struct {
	Signal syscall.Signal
	Reply[Order]
}

// A Reply takes an answer.
type Reply[T any] struct{ answer chan T }

// NewReply returns a Reply without an answer.
func NewReply[T any]() Reply[T] { return Reply[T]{make(chan T, 1)} }

// Answer answers, once. It does not block.
func (r Reply[T]) Answer(v T) { r.answer <- v }

// Answered returns where the answer comes.
func (r Reply[T]) Answered() <-chan T { return r.answer }

func (Reply[T]) question() {}

// Signals are those that a job may be sent, by name. The first four end it.
var Signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
	"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "ALRM": syscall.SIGALRM, "WINCH": syscall.SIGWINCH,
}

const ending = ".sock" // of the sockets' names

// answerTime is how long a gompirun may take to answer. Agents have less.
const answerTime = 5 * time.Second

// folders returns where sockets of a user may be, the first choice first.
func folders(user int) []string {
	all := []string{fmt.Sprintf("/tmp/gompi-%d", user)}
	runtime := fmt.Sprintf("/run/user/%d", user)
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) && user == os.Geteuid() {
		runtime = own
	}
	return append(all, filepath.Join(runtime, "gompi"))
}

// check reports whether a folder is the user's and only theirs.
func check(folder string, user int) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	case !ok || int(stat.Uid) != user:
		return fmt.Errorf("%s is not user %d's", folder, user)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, want 0700", folder, info.Mode().Perm())
	}
	return nil
}
