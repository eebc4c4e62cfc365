// Package monitor is the socket on which each gompirun answers questions about its job, and takes
// the order to end. Its clients are gompirun ps and top, whose text is here, too, logs, kill and
// attach, and for example curl. Jobs that are over have left files.
//
// # The socket
//
// The path is FOLDER/ID.sock, where ID is the job's id and FOLDER is /tmp/gompi-UID, which only
// its user may enter. If another user has taken that name, FOLDER is gompi in XDG_RUNTIME_DIR.
// That folder comes second because a system may remove it when its user logs out, while jobs run
// on. Only processes of the same user, and root, get an answer. The socket of a killed gompirun
// refuses connections; listing the jobs removes such sockets.
//
// # The protocol
//
// HTTP/1.1, with one request for each connection, without a body:
//
//	GET  /job          the job, as a Job in JSON
//	GET  /rank/N       where a rank is, as a Whereabouts in JSON
//	GET  /metrics      the job in Prometheus' text format, version 0.0.4
//	GET  /output       the last output; /output/follow: and the rest, until the end of the job
//	GET  /end          how the job ended, as an End in JSON, when it has; first 100 Continue
//	POST /signal/TERM  does what this signal to gompirun does; the answer is an Order in JSON
//
// The few lines of HTTP are here, because package net/http would enlarge the gompirun sent to
// other hosts by a sixth.
package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gompi/cudaops/topo"
)

// A State is the state of a job.
type State string

// The states.
const (
	Starting State = "starting" // agents or ranks are starting
	Running  State = "running"
	Stalled  State = "stalled" // ranks have been in one call for longer than -stall-warning
	Ending   State = "ending"
	Silent   State = "silent" // gompirun does not answer, perhaps stopped
	Ended    State = "ended"  // well; it is history
	Failed   State = "failed" // it is history
)

// States are the states of jobs that run.
var States = []State{Starting, Running, Stalled, Ending, Silent}

// A Job is a gompirun's description of its job. Times are in seconds.
type Job struct {
	ID       string                   `json:"id"`               // GOMPI_JOB_ID of its first run
	Reruns   []string                 `json:"reruns,omitempty"` // ids of later runs
	PID      int                      `json:"pid"`              // of gompirun
	User     int                      `json:"user"`             // its number
	Socket   string                   `json:"socket"`
	Begun    float64                  `json:"begun"` // since 1970
	Age      float64                  `json:"age"`
	Restarts int                      `json:"restarts"`
	State    State                    `json:"state"`
	Why      string                   `json:"why,omitempty"`    // reason for its end
	Since    float64                  `json:"longest_wait"`     // longest time of a rank in its current call
	Programs []string                 `json:"programs"`         // command lines
	Size     int                      `json:"size"`             // ranks, 0 before they are placed
	Hosts    []string                 `json:"hosts"`            // hosts with ranks
	Lines    []string                 `json:"doing"`            // calls of ranks, as reported on QUIT
	Ranks    []Rank                   `json:"ranks,omitempty"`  // running ranks
	Counts   bool                     `json:"stats"`            // the ranks count their calls
	GPUs     map[string][]topo.Device `json:"gpus,omitempty"`   // of hosts with NVML
	Err      string                   `json:"error,omitempty"`  // why a silent job does not answer
	Status   int                      `json:"status,omitempty"` // of gompirun that has ended
	Log      string                   `json:"log,omitempty"`    // file with the output of a job that is over
}

// A Rank is one running rank.
type Rank struct {
	Rank     int     `json:"rank"`
	Host     string  `json:"host"`
	PID      int     `json:"pid"`
	Doing    string  `json:"doing"`               // "is in barrier() number 17"
	Site     string  `json:"at,omitempty"`        // where in the program
	Since    float64 `json:"for,omitempty"`       // time in that call
	Said     string  `json:"last_line,omitempty"` // of output, of a program without gompi
	Kept     string  `json:"kept,omitempty"`      // obstacle to its process's running
	CPU      float64 `json:"cpu"`                 // processor time of its process
	Resident int64   `json:"resident"`            // bytes
	Recorded uint64  `json:"recorded_calls"`      // collectives, and messages that waited long
	*Counts
}

// A Whereabouts is the place of a rank, and the way there.
type Whereabouts struct {
	Err   string   `json:"error,omitempty"`
	Host  string   `json:"host,omitempty"`
	PID   int      `json:"pid,omitempty"`
	Login []string `json:"login,omitempty"` // prefix of commands to run there
}

// An Order is the effect of a signal.
type Order struct {
	Err   string  `json:"error,omitempty"`
	Ends  bool    `json:"ends"`  // the signal ends the job
	Limit float64 `json:"limit"` // time the end may take
}

// An End is how a job ended.
type End struct {
	Status    int    `json:"status"` // of gompirun
	LastWords string `json:"last_words"`
}

// A Question is a WhereIs, a Describe or a Signal. Each needs one answer, which does not block.
type Question interface{ question() }

// WhereIs asks for the place of a rank.
type WhereIs struct {
	Rank int
	Reply[Whereabouts]
}

// Describe asks about the job.
type Describe struct{ Reply[Job] }

// Signal orders the effect of a signal to gompirun. KILL kills the ranks at once.
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

// Answered returns the channel of the answer.
func (r Reply[T]) Answered() <-chan T { return r.answer }

func (Reply[T]) question() {}

// Signals are the signals that a job accepts, by name. The first four end it.
var Signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
	"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	"ALRM": syscall.SIGALRM, "WINCH": syscall.SIGWINCH,
}

const ending = ".sock" // of the sockets' names

// answerTime bounds the time of a gompirun to answer. Agents have less.
const answerTime = 5 * time.Second

// folders returns the possible folders of a user's sockets, the preferred one first.
func folders(user int) []string {
	all := []string{fmt.Sprintf("/tmp/gompi-%d", user)}
	runtime := fmt.Sprintf("/run/user/%d", user)
	if own := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(own) && user == os.Geteuid() {
		runtime = own
	}
	return append(all, filepath.Join(runtime, "gompi"))
}

// check returns an error unless a folder is the user's, and closed to others.
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
