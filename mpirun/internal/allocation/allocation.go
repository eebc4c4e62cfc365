// Package allocation finds the hosts of a job: those that the user names, that a batch system has
// given, or that the operator of the machine has left in a file.
package allocation

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gompi/hostfile"
	"gompi/internal/env"
)

// An Allocation is the hosts that there are for a job.
type Allocation struct {
	From     string // what it is, for people: "Slurm job 42"
	List     hostfile.List
	SlurmJob string // agents are started as steps of it; "" for none
	Own      string // the host that this process is on, as List calls it; "" for none of them

	// bounds states that these hosts are all that there are: other lists choose from them. Where it
	// is false other lists replace them.
	bounds bool
}

// Surroundings is what the search for hosts sees of this machine.
type Surroundings struct {
	Getenv  func(string) string
	Read    func(file string) ([]byte, error) // "-" is standard input
	IsLocal func(host string) bool
}

// Ask is what a command line states of hosts.
type Ask struct {
	ThisMachine bool     // and no other, whatever else there is
	Hostfile    string   // "" for none
	Lists       []string // of -H, for each program; "" for none
	Several     bool     // processes like this one may be tasks of srun, one on each node
}

// Find returns the hosts of a job, and for each program those that it may use, none for all. warn
// gets what the lists were understood to mean.
func (s Surroundings) Find(ask Ask, warn func(string)) (*Allocation, [][]hostfile.Share, error) {
	lists := make([]hostfile.List, len(ask.Lists))
	var all []string
	for i, list := range ask.Lists {
		if list == "" {
			continue
		}
		var err error
		if lists[i], err = hostfile.ParseList("-H", list); err != nil {
			return nil, nil, err
		}
		all = append(all, list)
	}
	a, err := s.find(ask, strings.Join(all, ","), warn)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range a.List.Warnings {
		warn(w)
	}
	shares := make([][]hostfile.Share, len(lists))
	for i, list := range ask.Lists {
		if list == "" {
			continue
		}
		if a.bounds {
			lists[i], err = a.narrow(lists[i], s.IsLocal, warn)
		}
		if err == nil {
			shares[i], err = a.List.Filter(lists[i])
		}
		if err != nil {
			return nil, nil, fmt.Errorf("-H %s: %w", list, err)
		}
	}
	return a, shares, nil
}

// find returns the hosts that there are for the job: those of the batch system
// as far as a hostfile leaves them, or those of the hostfile, or all that -H
// names, or this machine.
func (s Surroundings) find(ask Ask, list string, warn func(string)) (*Allocation, error) {
	if ask.ThisMachine {
		return thisMachine(), nil
	}
	typed := ask.Hostfile != "" || list != ""
	batch, err := s.granted(typed, warn)
	if err != nil {
		return nil, err
	}
	named, err := s.named(ask.Hostfile, list, batch)
	if err == nil && typed && batch != nil {
		if elsewhere, err := s.elsewhere(batch, named, list, warn); elsewhere != nil || err != nil {
			return elsewhere, err
		}
	}
	switch {
	case err != nil:
		return nil, err
	case batch == nil && named == nil:
		return thisMachine(), nil
	case batch == nil && len(named.List.Hosts) == 0: // but exclusions
		return nil, named.empty()
	case batch == nil:
		return named, nil
	case named == nil:
		if list == "" && !ask.Several {
			err = s.strayTask()
		}
		return batch, err
	}
	for _, w := range named.List.Warnings {
		warn(w)
	}
	inside, err := batch.narrow(named.List, s.IsLocal, warn)
	if err == nil {
		batch.List, err = batch.List.Choose(inside)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named.From, err)
	}
	batch.From += " and " + named.From
	return batch, nil
}

// granted returns the hosts that a batch system has given this job, nil if none has. Where the user
// types hosts, variables that make no sense are left aside: they may be of a job that is over.
func (s Surroundings) granted(typed bool, warn func(string)) (*Allocation, error) {
	a, err := s.allocation()
	if err != nil && typed {
		warn(fmt.Sprintf("left aside, since hosts are named: %v", err))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w (if that job is over: unset its variables, name hosts, or -standalone for this machine alone)", err)
	}
	return a, nil
}

// elsewhere returns the hosts that the user types, by a hostfile or by the list of -H, if batch has
// none of them, else nil. Then batch does not count: it may be over.
func (s Surroundings) elsewhere(batch, named *Allocation, list string, warn func(string)) (*Allocation, error) {
	typed := named
	if typed == nil {
		var err error
		if typed, err = s.named("", list, nil); err != nil {
			return nil, err
		}
	}
	hosts := typed.List
	hosts.Hosts = slices.Clone(hosts.Hosts)
	if _, err := batch.narrow(hosts, s.IsLocal, func(string) {}); err == nil {
		return nil, nil
	}
	warn(fmt.Sprintf("no host of %s is in %s (%s), which is left aside: unset its variables if that job is over", typed.From, batch.From, batch.List.Names()))
	return typed, nil
}

// named returns the hosts that the user names for the whole job: by the
// hostfile file, the list of -H, or the environment. It returns nil if there is
// none, and where -H only chooses from the hosts of batch.
func (s Surroundings) named(file, list string, batch *Allocation) (*Allocation, error) {
	switch user := s.Getenv(env.Hostfile); {
	case file != "":
		return s.file("-hostfile", file, "-hostfile "+file)
	case list != "" && batch != nil:
		return nil, nil
	case list != "":
		parsed, err := hostfile.ParseList("-H", list)
		return &Allocation{From: "-H", List: parsed}, err
	case user != "":
		return s.file(env.Hostfile, user, env.Hostfile+"="+user)
	case batch != nil:
		return nil, nil
	}
	return s.operator()
}

func thisMachine() *Allocation {
	return &Allocation{From: "this machine", List: hostfile.List{Hosts: []hostfile.Host{{Name: "localhost"}}}}
}

// allocation returns the hosts that a batch system has given this job, or nil.
func (s Surroundings) allocation() (*Allocation, error) {
	for _, look := range []func() (*Allocation, error){s.slurm, s.pbs, s.lsf, s.gridEngine} {
		a, err := look()
		if err != nil {
			return nil, err
		}
		if a != nil {
			if len(a.List.Hosts) == 0 {
				return nil, a.empty()
			}
			a.bounds = true
			if a.Own == "" {
				a.Own = s.ownName(a.List)
			}
			return a, nil
		}
	}
	return nil, nil
}

// empty is the error of an Allocation without hosts.
func (a *Allocation) empty() error {
	return fmt.Errorf(`%s: no host in it: want for example "node01 slots=4"`, a.From)
}

// ownName returns what list calls this machine.
func (s Surroundings) ownName(list hostfile.List) string {
	for _, h := range list.Hosts {
		if s.IsLocal(h.Name) {
			return h.Name
		}
	}
	return ""
}

// operator returns the hosts of the file that the operator of the machine has left for other
// launchers. It returns nil if there is none.
func (s Surroundings) operator() (*Allocation, error) {
	for _, v := range []string{
		"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE",
	} {
		if file := s.Getenv(v); file != "" {
			return s.file(v, file, v+"="+file)
		}
	}
	const mounted = "/etc/mpi/hostfile"
	if s.Getenv("K_MPI_JOB_ROLE") == "launcher" {
		return s.file("the MPI operator's hosts", mounted, "the MPI operator's "+mounted)
	}
	return nil, nil
}

// file reads a hostfile. "-" is standard input.
func (s Surroundings) file(variable, file, from string) (*Allocation, error) {
	data, err := s.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	name := file
	if file == "-" {
		name = "standard input"
	}
	list, err := hostfile.Parse(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return &Allocation{From: from, List: list}, nil
}

// narrow returns the part of list that a has, each of its names for this machine being the one that
// a uses. It passes to warn the hosts that a does not have.
func (a *Allocation) narrow(list hostfile.List, isLocal func(string) bool, warn func(string)) (hostfile.List, error) {
	for i := range list.Hosts {
		if h := &list.Hosts[i]; a.Own != "" && isLocal(h.Name) {
			h.Name = a.Own
		}
	}
	inside, outside := list.Within(a.List)
	if len(inside.Hosts) == 0 && len(list.Hosts) > 0 {
		return inside, fmt.Errorf("no host of it is in %s: want some of %s", a.From, a.List.Names())
	}
	if len(outside) > 0 {
		warn(fmt.Sprintf("not in %s, and left out: %s", a.From, strings.Join(outside, ", ")))
	}
	return inside, nil
}
