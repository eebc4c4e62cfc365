package mpirun

import (
	"fmt"
	"os"
	"strings"

	"gompi/hostfile"
	"gompi/mpirun/internal/plan"
)

// planInput returns the hosts of a job and the programs with the hosts that
// each may use. What the hosts are made of is not known yet. warn is told what
// the lists were understood to mean.
func planInput(o *options, warn func(string)) ([]hostfile.Host, []plan.Program, error) {
	lists := make([]hostfile.List, len(o.programs))
	var all []string
	for i, p := range o.programs {
		if p.hosts == "" {
			continue
		}
		var err error
		if lists[i], err = hostfile.ParseList("-H", p.hosts); err != nil {
			return nil, nil, err
		}
		all = append(all, p.hosts)
	}
	known, err := knownHosts(o.hostfile, all)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range known.Warnings {
		warn(w)
	}
	programs := make([]plan.Program, len(o.programs))
	for i, p := range o.programs {
		programs[i] = plan.Program{Argv: p.argv, NP: p.np, Wdir: p.wdir, Env: p.env}
		if p.hosts == "" {
			continue
		}
		if programs[i].Hosts, err = known.Filter(lists[i]); err != nil {
			return nil, nil, fmt.Errorf("-H %s: %w", p.hosts, err)
		}
	}
	if o.nodes.most == 0 {
		return known.Hosts, programs, nil
	}
	return o.nodes.pick(known.Hosts, programs)
}

// knownHosts returns the hosts of the hostfile, or all that -H names, or this
// machine.
func knownHosts(file string, lists []string) (hostfile.List, error) {
	switch {
	case file == "-":
		return hostfile.Parse("standard input", os.Stdin)
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return hostfile.List{}, fmt.Errorf("-hostfile: %w", err)
		}
		defer f.Close()
		return hostfile.Parse(file, f)
	case len(lists) > 0:
		return hostfile.ParseList("-H", strings.Join(lists, ","))
	}
	return hostfile.List{Hosts: []hostfile.Host{{Name: "localhost"}}}, nil
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
		out[i] = plan.Host{Name: h.Name, Slots: h.Slots, MaxSlots: h.MaxSlots, Cores: cores, Numa: hello.Numa}
	}
	return out
}
