// Package inventory is the hosts of a job.
//
//	allocation, batch  finds them: named by the user, granted by a batch system, or listed in a file
//	                   of the machine's operator
//	entry, beginning   has the launcher's knowledge of each: its agent, which is started, and the
//	                   agent's findings
//	places, gpus       turns these into the hosts of package plan
package inventory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gompi/hostfile"
	"gompi/internal/env"
)

// An Allocation is the available hosts of a job.
type Allocation struct {
	From     string // its name for people: "Slurm job 42"
	List     hostfile.List
	SlurmJob string // the job whose steps start the agents; "" for none
	Own      string // this machine's name in List; "" if it is not there

	// bounds states that other lists only choose from these hosts. Otherwise they replace them.
	bounds bool
}

// Surroundings is this machine as seen by the search for hosts.
type Surroundings struct {
	Getenv  func(string) string
	Read    func(file string) ([]byte, error) // "-" is standard input
	IsLocal func(host string) bool
}

// Ask is the command line's statements about hosts.
type Ask struct {
	ThisMachine bool     // this machine alone, whatever else there is
	Hostfile    string   // "" for none
	Lists       []string // of -H, for each program; "" for none
	Several     bool     // processes like this one may be tasks of srun, one on each node
}

// Find returns the hosts of a job, and for each program the hosts it may use, none for all. warn
// gets the interpretation of doubtful lists.
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

// find returns the available hosts: the batch system's, restricted by a hostfile, or the
// hostfile's, or all hosts of -H, or this machine.
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
	case batch == nil && len(named.List.Hosts) == 0: // only exclusions
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

// granted returns the hosts of a batch system's job, nil if there is none. If the user types
// hosts, invalid variables are ignored: they may be left over from a finished job.
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

// elsewhere returns the hosts typed by the user, by a hostfile or -H, if none of them is in
// batch, otherwise nil. Then batch does not count: its job may be over.
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
	warn(fmt.Sprintf("no host of %s is in %s (%s), which is left aside: unset its variables if that job is over",
		typed.From, batch.From, batch.List.Names()))
	return typed, nil
}

// named returns the hosts that the user names for the whole job: by the hostfile file, the list
// of -H, or the environment. It returns nil if there are none, or if -H only chooses from batch.
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

// allocation returns the hosts of a batch system's job, or nil.
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

// ownName returns this machine's name in list.
func (s Surroundings) ownName(list hostfile.List) string {
	for _, h := range list.Hosts {
		if s.IsLocal(h.Name) {
			return h.Name
		}
	}
	return ""
}

// operator returns the hosts of a file that the machine's operator provides for other launchers,
// nil if there is none.
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

// narrow returns the part of list that is in a, with a's own name for this machine. It passes the
// other hosts to warn.
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
