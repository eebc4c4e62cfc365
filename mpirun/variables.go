package mpirun

import (
	"fmt"
	"strings"

	"gompi/internal/env"
	"gompi/mpirun/internal/allocation"
	"gompi/mpirun/internal/launchenv"
)

// environment returns the variables that are the same for all ranks: those of
// gompirun itself that are handed on, and what flags say.
func (j *job) environment(vars []string) []string {
	above := allocation.Surroundings{Getenv: func(name string) string { v, _ := launchenv.Value(vars, name); return v }}
	ours := append(j.lifeEnvironment(), fmt.Sprintf("%s=%d", env.StartNS, j.begun.UnixNano()))
	for _, v := range []struct{ name, value string }{
		{env.PortRange, j.spec.PortRange},
		{env.Iface, j.spec.Interfaces},
		{env.SlurmSlots, above.HandDown()},
	} {
		if v.value != "" {
			ours = append(ours, v.name+"="+v.value)
		}
	}
	return launchenv.Merge([]string{env.Unbuffered + "=1"}, launchenv.Forward(vars), ours)
}

// tellReplaced says, once for all runs of the job, which of the variables that the
// user has exported, or given with -x, are not what ranks find, because they say
// which rank that is.
func (j *job) tellReplaced(n *launchenv.Node) {
	own, programs := j.environAt(n.Hosts[0])
	replaced := n.Replaced(launchenv.Merge(append([][]string{own}, programs...)...))
	if len(replaced) > 0 && !j.told {
		j.notef("replaced for the ranks: %s (-master-addr and -master-port choose where they meet)", strings.Join(replaced, ", "))
		j.told = true
	}
}
