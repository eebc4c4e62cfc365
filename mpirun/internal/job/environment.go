package job

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/env"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/program"
)

// environment returns the variables common to all ranks: gompirun's own, as far as they are
// forwarded, and the flags'.
func (j *Job) environment(vars []string) []string {
	above := inventory.Surroundings{Getenv: func(name string) string { v, _ := program.EnvValue(vars, name); return v }}
	ours := append(j.attemptEnvironment(), fmt.Sprintf("%s=%d", env.StartNS, j.begun.UnixNano()))
	for _, v := range []struct{ name, value string }{
		{env.PortRange, j.spec.PortRange},
		{env.Iface, j.spec.Interfaces},
		{env.SlurmSlots, above.HandDown()},
	} {
		if v.value != "" {
			ours = append(ours, v.name+"="+v.value)
		}
	}
	return program.MergeEnv([]string{env.Unbuffered + "=1"}, program.ForwardedEnv(vars), ours)
}

// environAt returns the environment of the ranks of a host, and -x's additions for each program.
func (j *Job) environAt(host string) (own []string, programs [][]string) {
	if n := j.Nodes[host]; n != nil {
		return n.Environ, [][]string{n.Program.Env}
	}
	for _, p := range j.spec.Programs {
		programs = append(programs, p.Env)
	}
	return j.system.Environ, programs
}

// reportReplaced reports, once for all attempts, the user's variables that are replaced for the
// ranks because they state a process's rank. Also reported is a variable that is kept and makes
// each rank a job of one.
func (j *Job) reportReplaced(n *program.Node) {
	if j.attempt.reportedReplaced {
		return
	}
	j.attempt.reportedReplaced = true
	own, programs := j.environAt(n.Hosts[0])
	all := program.MergeEnv(append([][]string{own}, programs...)...)
	if replaced := n.Replaced(all); len(replaced) > 0 {
		j.notef("replaced for the ranks: %s (-master-addr and -master-port choose where they meet)",
			strings.Join(replaced, ", "))
	}
	const alone = env.Boot + "=alone"
	if slices.Contains(own, alone) && slices.Contains(all, alone) && n.Size() > 1 {
		j.notef("%s is set: each of %d ranks is rank 0 of 1", alone, n.Size())
	}
}
