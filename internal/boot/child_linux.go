package boot

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/internal/env"
	"gompi/internal/seg"
	"gompi/internal/world"
)

// A child of a rank that has joined its job, such as a worker of Python's multiprocessing, has that
// rank's environment and is no rank. It is a job of one rank, which is what other libraries make of
// it. It is known by what its parent has done: the rank leaves the way to the agent to its children
// in another variable, and the agent shows them the host's segment, which has the rank's process id.
// Those with the environment that the rank began with come there as if they were the rank.

// leaveToChildren has children of this rank, which joins, be known as such.
func leaveToChildren(addr string) { os.Setenv(env.Joined, os.Getenv(env.JobID)+" "+addr) }

// parentsAgent returns the socket of the agent whose job has a rank that has left it to this
// process, its child; "" if there is none. A job that a child begins has a number of its own.
func parentsAgent() string {
	job, addr, ok := strings.Cut(os.Getenv(env.Joined), " ")
	if !ok || job != os.Getenv(env.JobID) {
		return ""
	}
	return addr
}

// child returns the job of a child of a rank that has joined by the agent at addr, unless that is
// gone.
func child(addr string) Boot {
	at, err := placeOnHost()
	if err != nil {
		return Alone()
	}
	if in, err := reconnect(addr, at.local, at.ranks); err == nil {
		if s, err := seg.Attach(in.seg); err == nil {
			tellOfChild(s, at.local)
			s.Close()
		}
		in.close()
	}
	return Alone()
}

// errChild is the error of a child that has come as if it were the rank.
var errChild = errors.New("a child of a rank that has joined")

// tellOfChild says what this process, a child of a local rank, is, if no child of a rank of this host
// has yet: a pool of processes may start them without end.
func tellOfChild(s *seg.Segment, local world.LocalRank) {
	if s.Rank(0).TellsOfChild() {
		fmt.Fprintf(os.Stderr, "gompi: process %d is a child of rank %d of %s, which has joined the job: like later ones it is a job of its own, of one rank (%s=alone: that is meant)\n",
			os.Getpid(), s.WorldRank(local), os.Getenv(env.Size), env.Boot)
	}
}

// isAbove reports whether a process is one of those above this one.
func isAbove(pid int) bool {
	for at, n := os.Getppid(), 0; n < 64; n++ {
		if at == pid {
			return true
		}
		name, parent := process(at)
		if name == "" {
			return false
		}
		at = parent
	}
	return false
}
