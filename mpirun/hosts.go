package mpirun

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/mpirun/internal/plan"
)

// planInput returns where the hosts of a job come from, its hosts, and its
// programs with the hosts that each may use. What the hosts are made of is not
// known yet. warn is told what the lists were understood to mean.
func planInput(o *options, s surroundings, warn func(string)) (*allocation, []hostfile.Host, []plan.Program, error) {
	lists := make([]hostfile.List, len(o.programs))
	var all []string
	for i, p := range o.programs {
		if p.hosts == "" {
			continue
		}
		var err error
		if lists[i], err = hostfile.ParseList("-H", p.hosts); err != nil {
			return nil, nil, nil, err
		}
		all = append(all, p.hosts)
	}
	a, err := s.find(o, strings.Join(all, ","), warn)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, w := range a.list.Warnings {
		warn(w)
	}
	programs := make([]plan.Program, len(o.programs))
	for i, p := range o.programs {
		programs[i] = plan.Program{Argv: p.argv, NP: p.np, Wdir: p.wdir, Env: p.env}
		if p.hosts == "" {
			continue
		}
		if a.bounds {
			lists[i], err = a.narrow(lists[i], s.isLocal, warn)
		}
		if err == nil {
			programs[i].Hosts, err = a.list.Filter(lists[i])
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("-H %s: %w", p.hosts, err)
		}
	}
	hosts := a.list.Hosts
	if o.nodes.most > 0 {
		hosts, programs, err = o.nodes.pick(hosts, programs)
	}
	return a, hosts, programs, err
}

// find returns the hosts that there are for the job: those of the batch system
// as far as a hostfile leaves them, or those of the hostfile, or all that -H
// names, or this machine.
func (s surroundings) find(o *options, list string, warn func(string)) (*allocation, error) {
	if o.standalone {
		return thisMachine(), nil
	}
	batch, err := s.allocation()
	if err != nil {
		return nil, err
	}
	named, err := s.named(o.hostfile, list, batch)
	switch {
	case err != nil:
		return nil, err
	case batch == nil && named == nil:
		return thisMachine(), nil
	case batch == nil && len(named.list.Hosts) == 0: // but exclusions
		return nil, named.empty()
	case batch == nil:
		return named, nil
	case named == nil:
		if list == "" && o.endpoint == "" {
			err = s.strayTask()
		}
		return batch, err
	}
	for _, w := range named.list.Warnings {
		warn(w)
	}
	inside, err := batch.narrow(named.list, s.isLocal, warn)
	if err == nil {
		batch.list, err = batch.list.Choose(inside)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named.from, err)
	}
	batch.from += " and " + named.from
	return batch, nil
}

// named returns the hosts that the user names for the whole job: by the
// hostfile file, the list of -H, or the environment. It returns nil if there is
// none, and where -H only chooses from the hosts of batch.
func (s surroundings) named(file, list string, batch *allocation) (*allocation, error) {
	switch user := s.getenv(env.Hostfile); {
	case file != "":
		return s.file("-hostfile", file, "-hostfile "+file)
	case list != "" && batch != nil:
		return nil, nil
	case list != "":
		parsed, err := hostfile.ParseList("-H", list)
		return &allocation{from: "-H", list: parsed}, err
	case user != "":
		return s.file(env.Hostfile, user, env.Hostfile+"="+user)
	case batch != nil:
		return nil, nil
	}
	return s.operator()
}

func thisMachine() *allocation {
	return &allocation{from: "this machine", list: hostfile.List{Hosts: []hostfile.Host{{Name: "localhost"}}}}
}

// planHosts adds to each host what its agent found. Agents that run on one
// machine, under several names, share its cores: each plans with its own part,
// if there is a core for each of them.
func planHosts(hosts []hostfile.Host, links []*link) []plan.Host {
	sharers := map[string]int{}
	for _, l := range links {
		sharers[l.hello.Machine]++
	}
	taken := map[string]int{}
	out := make([]plan.Host, len(hosts))
	for i, h := range hosts {
		hello := links[i].hello
		k, n := taken[hello.Machine], sharers[hello.Machine]
		taken[hello.Machine]++
		cores := hello.Cores
		if c := len(cores); n <= c {
			cores = cores[k*c/n : (k+1)*c/n]
		}
		out[i] = plan.Host{
			Name: h.Name, Via: links[i].reached(), Slots: h.Slots, MaxSlots: h.MaxSlots,
			Cores: cores, Numa: hello.Numa, Packages: hello.Packages, Quota: share(hello.Quota, n),
		}
	}
	return out
}

// masterAddr returns an address of the node of rank 0 by which all nodes reach
// it: the one by which the launcher did, or, if it is the launcher's own host,
// the one from which it reached another. Where neither is known it is the name
// that the user has for the host.
func masterAddr(nodes []*link, first int) string {
	l := nodes[first]
	if !l.agent.Here() {
		return cmp.Or(l.hello.Address, l.host)
	}
	alone := true
	for _, other := range nodes {
		if other.hello.Launcher != "" && !other.agent.Here() {
			return other.hello.Launcher
		}
		alone = alone && other.agent.Here()
	}
	if alone {
		return "127.0.0.1"
	}
	return l.hello.Host
}

// workingDir returns the working directory by the name that the user has for
// it, which other hosts may have too.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// share returns the part of a quota that each of n gets, where there is one.
func share(quota, n int) int {
	if quota == 0 {
		return 0
	}
	return max(1, quota/n)
}
