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

// A child of a rank that has joined its job, such as a worker of Python's multiprocessing, inherits
// the rank's environment but is no rank. Like other libraries, gompi makes the child a job of one
// rank. The rank leaves the agent's address to its children in another variable. At that address
// the agent gives the children the host's segment, which has the rank's process id. A child with
// the rank's original environment opens the agent like the rank.

// leaveToChildren sets the variable by which children of this rank are known.
func leaveToChildren(addr string) { os.Setenv(env.Joined, os.Getenv(env.JobID)+" "+addr) }

// parentsAgent returns the agent's socket that a rank of this job left to this process, its child,
// or "". If the child is in a job of its own, the job's number differs.
func parentsAgent() string {
	job, addr, ok := strings.Cut(os.Getenv(env.Joined), " ")
	if !ok || job != os.Getenv(env.JobID) {
		return ""
	}
	return addr
}

// child returns the job of a rank's child: of one rank. addr is the agent's socket, and may be
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

// errChild is the error of a child that opens the agent like the rank.
var errChild = errors.New("a child of a rank that has joined")

// tellOfChild prints that this process is a child of a local rank, once for each host: a pool of
// processes may start children without end.
func tellOfChild(s *seg.Segment, local world.LocalRank) {
	if s.Rank(0).TellsOfChild() {
		fmt.Fprintf(os.Stderr, "gompi: process %d is a child of rank %d of %s, which has joined the job: like later ones it is a job of its own, of one rank (%s=alone: that is meant)\n",
			os.Getpid(), s.WorldRank(local), os.Getenv(env.Size), env.Boot)
	}
}

// isAbove reports whether a process is an ancestor of this one.
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
