package proc

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/program"
	"gompi/mpirun/internal/stdio"
)

// On its own host the launcher kills the leftovers of a killed agent. On other hosts the agent's
// parent process does, a watchdog. The watchdog waits until the agent ends or its heartbeats
// stop, and holds the channel open until no process is left, so that the launcher does not see
// the end earlier.

// outliving bounds the time of an agent to end after its channel is closed: longer than its
// attempts to kill unkillable processes.
const outliving = Hopeless + 2*time.Second

// Guard runs an agent for the launcher behind the standard descriptors, by calling this program
// with flag. The result is the agent's exit status, when the agent and all its descendants have
// ended. The process is the watchdog's alone.
func Guard(flag string) int {
	SetName("gompi-watchdog")
	status, err := guard(flag)
	if err != nil {
		fmt.Fprintf(stdio.Stderr, "gompirun: agent: %v\n", err)
		return program.CannotStart
	}
	return status
}

func guard(flag string) (int, error) {
	if err := Adopt(); err != nil {
		return 0, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return 0, fmt.Errorf("pipe: %w", err)
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{os.Args[0], flag}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, uintptr(pipe[1])},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT}, // a stopped agent ends its ranks if this process dies
	})
	unix.Close(pipe[1])
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	agent := NewWatch(pid)
	silent := awaitSilence(pipe[0], 0, func() bool { return agent.Look() == Starves })
	signal.Ignore(unix.SIGPIPE) // stderr may have lost its reader
	if silent {
		fmt.Fprintln(stdio.Stderr, "gompirun: the agent was stopped, or hung, and has been killed")
	} else {
		awaitEnd(pid)
	}
	status := endAll(pid)
	RemoveGroupOf(pid)
	return status, nil
}

// looks is the number of polls in a promised interval. A poll that times out counts once, however
// long: this host may have been suspended, and the agent may not have run since. A poll does not
// count if the agent lacked a processor meanwhile.
const looks = 4

// awaitSilence waits until the agent, which holds the other end of pipe, ends or hangs. The
// result is false if the agent has ended, true if a promised word is overdue, or if the agent
// runs on for too long after its input, channel, was closed. starves reports whether the agent
// has lacked a processor since the last call.
func awaitSilence(pipe, channel int, starves func() bool) bool {
	var promised time.Duration // the next word comes within this time of the last; 0: no promise
	var end time.Time          // deadline for the agent to end, once its channel is closed
	for passed := 0; passed < looks; {
		limit := -1
		switch {
		case channel < 0:
			limit = int(max(0, time.Until(end)/time.Millisecond)) + 1
		case promised > 0:
			limit = int(promised/looks/time.Millisecond) + 1
		}
		fds := []unix.PollFd{{Fd: int32(pipe), Events: unix.POLLIN}, {Fd: int32(channel)}}
		n, err := unix.Poll(fds, limit)
		if err == unix.EINTR {
			continue
		}
		if err != nil || channel < 0 && time.Now().After(end) {
			return true
		}
		if n == 0 {
			if !starves() {
				passed++
			}
			continue
		}
		if fds[1].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			channel, end = -1, time.Now().Add(outliving)
		}
		if fds[0].Revents == 0 {
			continue
		}
		var words [64]byte
		n, err = unix.Read(pipe, words[:])
		if err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
			return false // only the agent holds the other end
		}
		if n >= 8 {
			promised, passed = time.Duration(binary.NativeEndian.Uint64(words[n/8*8-8:])), 0
		}
	}
	return true
}

// Promise notifies an agent's watchdog, behind a descriptor, that another word will come within
// d; 0 takes the promise back. It does not block.
func Promise(fd int, d time.Duration) {
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], uint64(d))
	unix.Write(fd, word[:]) // on error the watchdog has ended: the agent's loop notices
}

// SetName sets the name that ps shows, instead of the link's by which the program was found.
func SetName(name string) {
	os.WriteFile("/proc/self/comm", []byte(name), 0) // nothing depends on it
}

// awaitEnd waits until an ending child, which has closed its descriptors, can be reaped.
func awaitEnd(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// endAll kills all processes below this one, the agent first, and returns the agent's exit
// status. An agent that has ended with status 0 has done the necessary kills, so that the rest
// may live on.
func endAll(agent int) int {
	status := program.CannotStart
	for deadline := time.Now().Add(Hopeless); time.Now().Before(deadline); time.Sleep(KillPeriod) {
		for { // reap
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return status
			}
			if err != nil && err != unix.EINTR || pid == 0 {
				break
			}
			switch {
			case pid != agent:
			case ws.Exited() && ws.ExitStatus() == 0:
				return 0
			case ws.Exited():
				status = ws.ExitStatus()
			case ws.Signaled():
				fmt.Fprintf(stdio.Stderr, "gompirun: the agent was killed by signal %d (%v)\n", ws.Signal(),
					ws.Signal())
			}
		}
		SignalBelow(unix.SIGKILL, nil)
		KillGroupsOf(agent)
	}
	return status
}
