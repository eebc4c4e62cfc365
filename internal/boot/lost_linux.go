package boot

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"gompi/internal/env"
	"gompi/internal/seg"
)

// AgentName is what the kernel calls the process of an agent of gompirun.
const AgentName = "gompi-agent"

// lostVariables returns an error if gompirun's agent has started this process as one of several
// ranks, which it shows, but has its variables no more. Else each rank would be rank 0 of 1.
func lostVariables() error {
	size, how := jobBehind("/proc/self")
	if agent := agentAbove(os.Getppid()); size == 0 && agent != 0 {
		size, how = jobBehind(fmt.Sprintf("/proc/%d", agent))
	}
	if size < 2 {
		return nil
	}
	return fmt.Errorf("started by gompirun as one of %d ranks (%s), but without its variables, as behind env -i, su -, sudo, apptainer --cleanenv or docker run: "+
		"it would be rank 0 of 1, as each of the others; have %s and all others that begin with GOMPI_ passed on, or set %s=alone to run it as a job of one rank",
		size, how, env.Rank, env.Boot)
}

// jobBehind returns the number of ranks of the job whose segment a process has open, 0 if there is
// none, or if that cannot be seen, and where it is.
func jobBehind(process string) (size int, where string) {
	fds, err := os.ReadDir(process + "/fd")
	if err != nil {
		return 0, "" // another user's process
	}
	for _, fd := range fds {
		at := process + "/fd/" + fd.Name()
		if size = seg.JobSize(at); size > 0 {
			return size, at + " is its shared memory"
		}
	}
	return 0, ""
}

// agentAbove returns the agent among a process and those above it, 0 if there is none.
func agentAbove(pid int) int {
	for range 64 { // more than wrappers there are
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || pid <= 1 {
			break
		}
		begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if string(stat[begin+1:end]) == AgentName {
			return pid
		}
		fields := bytes.Fields(stat[end+1:])
		pid, _ = strconv.Atoi(string(fields[1])) // the kernel's
	}
	return 0
}
