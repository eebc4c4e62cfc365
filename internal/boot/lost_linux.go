package boot

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"gompi/internal/env"
	"gompi/internal/seg"
)

// AgentName is the kernel's name for an agent process of gompirun, AgentOfOne for an agent of a job
// of one rank. Other users see this name, unlike most data of a process.
const (
	AgentName  = "gompi-agent"
	AgentOfOne = AgentName + "-1"
)

// lostVariables returns an error if gompirun's agent has started this process as one of several
// ranks, but the process lacks the agent's variables. Else each rank would be rank 0 of 1.
func lostVariables() error {
	how := jobSegment()
	if how == "" {
		how = agentAbove(os.Getppid())
	}
	if how == "" {
		return nil
	}
	return fmt.Errorf("started by gompirun as one of several ranks (%s), but without its variables, as behind env -i, su -, sudo, apptainer --cleanenv or docker run: "+
		"it would be rank 0 of 1, as each of the others; have %s and all others that begin with GOMPI_ passed on, or set %s=alone to run it as a job of one rank",
		how, env.Rank, env.Boot)
}

// jobSegment describes the descriptor of this process that is the segment of a job of several
// ranks, or returns "".
func jobSegment() string {
	const dir = "/proc/self/fd/"
	fds, _ := os.ReadDir(dir)
	for _, fd := range fds {
		if seg.JobSize(dir+fd.Name()) > 1 {
			return dir + fd.Name() + " is their shared memory"
		}
	}
	return ""
}

// agentAbove searches pid and its ancestors for the agent of a job of several ranks, and returns a
// description, or "". Ancestors may be another user's, as behind sudo -u.
func agentAbove(pid int) string {
	for range 64 { // more than any chain of wrappers
		name, parent := process(pid)
		switch name {
		case "":
			return ""
		case AgentName:
			return fmt.Sprintf("process %d is their agent", pid)
		case AgentOfOne:
			return ""
		}
		pid = parent
	}
	return ""
}

// process returns the kernel's name of a process and its parent, or "" if the process does not
// exist or is the init process.
func process(pid int) (name string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid <= 1 {
		return "", 0
	}
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	parent, _ = strconv.Atoi(string(bytes.Fields(stat[end+1:])[1])) // the kernel's
	return string(stat[begin+1 : end]), parent
}
