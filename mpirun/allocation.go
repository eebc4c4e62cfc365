package mpirun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"gompi/hostfile"
	"gompi/mpirun/internal/remote"
)

// An allocation is the hosts that somebody else than the command line gives a
// job: a batch system, or whoever has set a variable with a file of hosts.
type allocation struct {
	from string // what it is, for people: "Slurm job 42"
	list hostfile.List

	// bounds says that these hosts are all that there are: other lists choose
	// from them. Where it is false other lists replace them.
	bounds bool

	slurmJob string // agents are started as steps of it; "" for none
	own      string // the host that this process is on, as the list calls it; "" for none of them
}

// surroundings is what the search for an allocation sees of this machine.
type surroundings struct {
	getenv  func(string) string
	read    func(file string) ([]byte, error)
	isLocal func(host string) bool
}

func here() surroundings { return surroundings{os.Getenv, readFile, remote.IsLocal} }

func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// allocation returns the hosts that a batch system has given this job, or nil.
func (s surroundings) allocation() (*allocation, error) {
	for _, look := range []func() (*allocation, error){s.slurm, s.pbs, s.lsf, s.gridEngine} {
		a, err := look()
		if err != nil {
			return nil, err
		}
		if a != nil {
			if len(a.list.Hosts) == 0 {
				return nil, a.empty()
			}
			a.bounds = true
			if a.own == "" {
				a.own = s.ownName(a.list)
			}
			return a, nil
		}
	}
	return nil, nil
}

// empty says that a has no hosts.
func (a *allocation) empty() error {
	return fmt.Errorf(`%s: no host in it: want for example "node01 slots=4"`, a.from)
}

// ownName returns what list calls this machine.
func (s surroundings) ownName(list hostfile.List) string {
	for _, h := range list.Hosts {
		if s.isLocal(h.Name) {
			return h.Name
		}
	}
	return ""
}

// slurm reads what salloc, sbatch or srun has set.
func (s surroundings) slurm() (*allocation, error) {
	job, nodes := s.first("SLURM_JOB_ID", "SLURM_JOBID"), s.first("SLURM_JOB_NODELIST", "SLURM_NODELIST")
	if job == "" || nodes == "" {
		return nil, nil
	}
	a := &allocation{from: "Slurm job " + job, slurmJob: job}
	names, err := hostfile.ExpandNodes(nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.from, err)
	}
	slots, err := s.slurmSlots(nodes, len(names))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.from, err)
	}
	for i, n := range names {
		a.list.Hosts = append(a.list.Hosts, hostfile.Host{Name: n, Slots: slots[i]})
		if n == s.getenv("SLURMD_NODENAME") {
			a.own = n
		}
	}
	return a, nil
}

// slurmSlots returns how many ranks each of n nodes is meant to take: the tasks
// that were asked for, else as many as have cores.
func (s surroundings) slurmSlots(nodes string, n int) ([]int, error) {
	name, each := "SLURM_TASKS_PER_NODE", 1
	if s.getenv("SLURM_STEP_ID") != "" {
		// Inside a step this is about the step; what was asked for the job is
		// in another variable, if it was.
		if per, err := strconv.Atoi(s.getenv("SLURM_NTASKS_PER_NODE")); err == nil && per > 0 {
			return fill(n, per), nil
		}
		name = ""
	}
	if name == "" || s.getenv(name) == "" {
		name = "SLURM_JOB_CPUS_PER_NODE"
		if cpus, err := strconv.Atoi(s.getenv("SLURM_CPUS_PER_TASK")); err == nil && cpus > 0 {
			each = cpus
		}
	}
	value := s.getenv(name)
	if value == "" {
		return fill(n, 0), nil // their cores
	}
	counts, err := hostfile.ParseCounts(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(counts) != n {
		return nil, fmt.Errorf("%s=%s counts for %d nodes, and SLURM_JOB_NODELIST=%s names %d", name, value, len(counts), nodes, n)
	}
	for i := range counts {
		counts[i] = max(1, counts[i]/each)
	}
	return counts, nil
}

func fill(n, value int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = value
	}
	return out
}

// strayTask says what is wrong if srun has started gompirun as one of several
// tasks: each would start the whole job.
func (s surroundings) strayTask() error {
	tasks, err := strconv.Atoi(s.getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || tasks < 2 || s.getenv("SLURM_STEP_ID") == "" {
		return nil
	}
	if s.getenv("SLURM_PROCID") != "0" {
		return errStrayTask // the first has said it
	}
	return fmt.Errorf("srun has started %d of me, each of which would start the job: want gompirun without srun, or srun -N1 -n1 gompirun", tasks)
}

// errStrayTask is the error of a task whose elder says what is wrong.
var errStrayTask = errors.New("one of several tasks")

// pbs reads the file of PBS and Torque: one line for each slot.
func (s surroundings) pbs() (*allocation, error) {
	file := s.getenv("PBS_NODEFILE")
	if file == "" {
		return nil, nil
	}
	return s.slotLines("PBS_NODEFILE", file, jobName("PBS job", s.getenv("PBS_JOBID")))
}

// slotLines reads a file that has one line for each slot.
func (s surroundings) slotLines(variable, file, from string) (*allocation, error) {
	a, err := s.file(variable, file, from)
	if err != nil {
		return nil, err
	}
	for i := range a.list.Hosts {
		if h := &a.list.Hosts[i]; h.Bare {
			h.Slots, h.Bare = 1, false
		}
	}
	return a, nil
}

// lsf reads what LSF has set: hosts with their counts, or, as it leaves that
// out for large jobs, a file or words with one host for each slot.
func (s surroundings) lsf() (*allocation, error) {
	from := jobName("LSF job", s.getenv("LSB_JOBID"))
	if pairs := strings.Fields(s.getenv("LSB_MCPU_HOSTS")); len(pairs) > 0 {
		if len(pairs)%2 != 0 {
			return nil, fmt.Errorf("LSB_MCPU_HOSTS=%q: want pairs of a host and its slots", s.getenv("LSB_MCPU_HOSTS"))
		}
		var items []string
		for i := 0; i < len(pairs); i += 2 {
			items = append(items, pairs[i]+":"+pairs[i+1])
		}
		return listed("LSB_MCPU_HOSTS", items, from)
	}
	if file := s.getenv("LSB_DJOB_HOSTFILE"); file != "" {
		return s.slotLines("LSB_DJOB_HOSTFILE", file, from)
	}
	if words := strings.Fields(s.getenv("LSB_HOSTS")); len(words) > 0 {
		return listed("LSB_HOSTS", words, from)
	}
	return nil, nil
}

// gridEngine reads the file of Grid Engine, whose lines begin with a host and
// its slots and end with what is of no interest here.
func (s surroundings) gridEngine() (*allocation, error) {
	file := s.getenv("PE_HOSTFILE")
	if file == "" {
		return nil, nil
	}
	data, err := s.read(file)
	if err != nil {
		return nil, fmt.Errorf("PE_HOSTFILE: %w", err)
	}
	var items []string
	for line := range strings.Lines(string(data)) {
		switch f := strings.Fields(line); {
		case len(f) >= 2:
			items = append(items, f[0]+":"+f[1])
		case len(f) == 1:
			return nil, fmt.Errorf("PE_HOSTFILE %s: %q: want a host and its slots", file, f[0])
		}
	}
	return listed("PE_HOSTFILE "+file, items, jobName("Grid Engine job", s.getenv("JOB_ID")))
}

// listed makes an allocation of items as -H has them.
func listed(variable string, items []string, from string) (*allocation, error) {
	list, err := hostfile.ParseList(variable, strings.Join(items, ","))
	if err != nil {
		return nil, err
	}
	return &allocation{from: from, list: list}, nil
}

func jobName(what, id string) string { return strings.TrimSuffix(what+" "+id, " ") }

// operator returns the hosts of the file that an operator, or whoever set up
// the machine, has left for other launchers. It returns nil if there is none.
func (s surroundings) operator() (*allocation, error) {
	for _, v := range []string{
		"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE",
	} {
		if file := s.getenv(v); file != "" {
			return s.file(v, file, v+"="+file)
		}
	}
	const mounted = "/etc/mpi/hostfile"
	if s.getenv("K_MPI_JOB_ROLE") == "launcher" {
		return s.file("the MPI operator's hosts", mounted, "the MPI operator's "+mounted)
	}
	return nil, nil
}

// file reads a hostfile. "-" is standard input.
func (s surroundings) file(variable, file, from string) (*allocation, error) {
	data, err := s.read(file)
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
	return &allocation{from: from, list: list}, nil
}

// first returns the first of the variables that is set.
func (s surroundings) first(names ...string) string {
	for _, n := range names {
		if v := s.getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// narrow returns the part of list that a has, each of its names for this
// machine being the one that a uses. It tells warn of hosts that a does not
// have.
func (a *allocation) narrow(list hostfile.List, isLocal func(string) bool, warn func(string)) (hostfile.List, error) {
	for i := range list.Hosts {
		if h := &list.Hosts[i]; a.own != "" && isLocal(h.Name) {
			h.Name = a.own
		}
	}
	inside, outside := list.Within(a.list)
	if len(inside.Hosts) == 0 && len(list.Hosts) > 0 {
		return inside, fmt.Errorf("no host of it is in %s: want some of %s", a.from, a.list.Names())
	}
	if len(outside) > 0 {
		warn(fmt.Sprintf("not in %s, and left out: %s", a.from, strings.Join(outside, ", ")))
	}
	return inside, nil
}
