package boot

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"gompi/internal/env"
	"gompi/internal/seg"
)

// AgentName is what the kernel calls the process of an agent of gompirun, AgentOfOne that of one
// whose job has one rank. Unlike most of a process, other users see its name.
const (
	AgentName  = "gompi-agent"
	AgentOfOne = AgentName + "-1"
)

// lostVariables returns an error if gompirun's agent has started this process as one of several
// ranks, which it shows, but has its variables no more. Else each rank would be rank 0 of 1.
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

// jobSegment returns which descriptor of this process is the segment of a job of several ranks, ""
// if there is none.
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

// agentAbove returns which of a process and those above it is the agent of a job of several ranks,
// "" if there is none. They may be another user's, as behind sudo -u.
func agentAbove(pid int) string {
	for range 64 { // more than wrappers there are
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

// process returns what the kernel calls a process, and which is its parent; "" if it is not there,
// or is the first of all.
func process(pid int) (name string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || pid <= 1 {
		return "", 0
	}
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	parent, _ = strconv.Atoi(string(bytes.Fields(stat[end+1:])[1])) // the kernel's
	return string(stat[begin+1 : end]), parent
}
