package mpirun

import (
	"fmt"
	"io"
	"os"
	"slices"

	"gompi/hostfile"
	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/remote"
	"gompi/mpirun/internal/stdio"
)

// here is this machine, for package inventory.
func here() inventory.Surroundings {
	return inventory.Surroundings{Getenv: os.Getenv, Read: readFile, IsLocal: remote.IsLocal}
}

func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdio.Stdin)
	}
	return os.ReadFile(name)
}

// planInput returns the origin of a job's hosts, its hosts, and its programs with the hosts that
// each may use. The hosts' cores and GPUs are not known yet. warn logs the interpretation of the
// lists.
func planInput(spec *cmdline.Spec, s inventory.Surroundings, warn func(string)) (*inventory.Allocation,
	[]hostfile.Host, []plan.Program, error) {
	ask := inventory.Ask{ThisMachine: spec.Standalone, Hostfile: spec.Hostfile,
		Several: spec.Rendezvous.Endpoint != ""}
	for _, p := range spec.Programs {
		if f := spec.Policy.Rankfile; f != nil && p.Hosts == "" {
			p.Hosts = f.HostList()
		}
		ask.Lists = append(ask.Lists, p.Hosts)
	}
	a, shares, err := s.Find(ask, warn)
	if err != nil {
		return nil, nil, nil, err
	}
	if f := spec.Policy.Rankfile; f != nil && a.Own != "" {
		f.Rename(s.IsLocal, a.Own) // as in a's own lists
	}
	programs := make([]plan.Program, len(spec.Programs))
	for i, p := range spec.Programs {
		programs[i] = plan.Program{Name: p.Name(), NP: p.NP, Hosts: shares[i]}
	}
	hosts := a.List.Hosts
	if spec.Nodes.Most > 0 {
		hosts, programs, err = pick(spec.Nodes, hosts, programs)
	}
	return a, hosts, programs, err
}

// pick returns the first hosts that programs may use, as many as r, the range of -nnodes, allows,
// and the programs with their parts of these hosts.
func pick(r cmdline.NodeRange, hosts []hostfile.Host, programs []plan.Program) ([]hostfile.Host,
	[]plan.Program, error) {
	usable := make([]bool, len(hosts))
	for _, p := range programs {
		for i := range hosts {
			named := func(s hostfile.Share) bool { return s.Host == i }
			usable[i] = usable[i] || len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, named)
		}
	}
	picked := 0
	hosts, programs, err := plan.Restrict(hosts, programs, func(host int) bool {
		if !usable[host] || picked == r.Most {
			return false
		}
		picked++
		return true
	})
	if err == nil && picked < r.Least {
		err = fmt.Errorf("hosts known: %d: want more in -hostfile or -H", picked)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("-nnodes %v: %w", r, err)
	}
	return hosts, programs, nil
}

// starter returns the starter of agents on the hosts of a: on this machine as a process;
// elsewhere through srun if Slurm has granted the hosts, otherwise through ssh or the user's
// command. If the user states how long hosts may take to start, unreachable hosts are tried
// again, because they may be booting.
func starter(r cmdline.Reach, a *inventory.Allocation) (remote.LocalOrRemote, error) {
	local := remote.Local{Stderr: os.Stderr, Input: heritage()}
	if a.SlurmJob != "" {
		srun, err := remote.NewSrun(a.SlurmJob, r.LaunchAgent)
		return remote.LocalOrRemote{Local: local, Remote: srun, Own: a.Own}, err
	}
	flag, rsh := "-rsh", r.RSH
	if rsh == "" {
		flag, rsh = env.RSH, os.Getenv(env.RSH)
	}
	if rsh == "" {
		rsh, flag = cli.LoginVariables(os.Getenv)
	}
	if rsh == "" {
		rsh = "ssh"
	}
	command, err := cli.SplitCommand(rsh)
	if err != nil {
		return remote.LocalOrRemote{}, fmt.Errorf("%s: %w", flag, err)
	}
	ssh, err := remote.NewSSH(command, r.LaunchAgent, r.StartTimeout > 0)
	return remote.LocalOrRemote{Local: local, Remote: ssh, Own: a.Own}, err
}
