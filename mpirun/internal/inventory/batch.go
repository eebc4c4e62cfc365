package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gompi/hostfile"
	"gompi/internal/env"
)

// slurm reads the variables of salloc, sbatch or srun.
func (s Surroundings) slurm() (*Allocation, error) {
	job := cmp.Or(s.Getenv("SLURM_JOB_ID"), s.Getenv("SLURM_JOBID"))
	nodes := cmp.Or(s.Getenv("SLURM_JOB_NODELIST"), s.Getenv("SLURM_NODELIST"))
	if job == "" || nodes == "" {
		return nil, nil
	}
	a := &Allocation{From: "Slurm job " + job, SlurmJob: job}
	names, err := hostfile.ExpandNodes(nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.From, err)
	}
	slots, known := s.handedDown(job, len(names))
	if !known {
		slots, err = s.slurmSlots(nodes, len(names))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.From, err)
	}
	for i, n := range names {
		a.List.Hosts = append(a.List.Hosts, hostfile.Host{Name: n, Slots: slots[i]})
		if n == s.Getenv("SLURMD_NODENAME") {
			a.Own = n
		}
	}
	return a, nil
}

// HandDown returns the value of GOMPI_SLURM_SLOTS for ranks: this process's Slurm job, and the
// slots of its nodes, "" if there is no job or the slots are unknown. A gompirun started by a
// rank needs them, because Slurm's own variables describe the ranks there.
func (s Surroundings) HandDown() string {
	a, err := s.slurm()
	if a == nil || err != nil {
		return ""
	}
	var slots []int
	for _, h := range a.List.Hosts {
		slots = append(slots, h.Slots)
	}
	if slices.Contains(slots, 0) {
		return ""
	}
	return a.SlurmJob + ":" + strings.ReplaceAll(strings.Trim(fmt.Sprint(slots), "[]"), " ", ",")
}

// handedDown returns the HandDown of a parent gompirun about a job with n nodes, if there is one.
func (s Surroundings) handedDown(job string, n int) ([]int, bool) {
	of, list, _ := strings.Cut(s.Getenv(env.SlurmSlots), ":")
	if list == "" || of != job {
		return nil, false
	}
	slots, err := hostfile.ParseCounts(list)
	return slots, err == nil && len(slots) == n
}

// slurmSlots returns the intended ranks on each of n nodes: the requested tasks, or else one for
// each requested number of cores.
func (s Surroundings) slurmSlots(nodes string, n int) ([]int, error) {
	name, each := "SLURM_TASKS_PER_NODE", 1
	if s.Getenv("SLURM_STEP_ID") != "" {
		// Inside a step SLURM_TASKS_PER_NODE describes the step; the job's request, if any, is in
		// another variable.
		if per, err := strconv.Atoi(s.Getenv("SLURM_NTASKS_PER_NODE")); err == nil && per > 0 {
			return slices.Repeat([]int{per}, n), nil
		}
		name = ""
	}
	if name == "" || s.Getenv(name) == "" {
		name = "SLURM_JOB_CPUS_PER_NODE"
		if cpus, err := strconv.Atoi(s.Getenv("SLURM_CPUS_PER_TASK")); err == nil && cpus > 0 {
			each = cpus
		}
	}
	value := s.Getenv(name)
	if value == "" {
		return make([]int, n), nil // 0: all cores
	}
	counts, err := hostfile.ParseCounts(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(counts) != n {
		return nil, fmt.Errorf("%s=%s counts for %d nodes, and SLURM_JOB_NODELIST=%s names %d", name, value,
			len(counts), nodes, n)
	}
	for i := range counts {
		counts[i] = max(1, counts[i]/each)
	}
	return counts, nil
}

// strayTask returns an error if srun has started gompirun as one of several tasks, each of which
// would start the whole job.
func (s Surroundings) strayTask() error {
	if s.Getenv(env.Rank) != "" && s.Getenv("SLURM_TASK_PID") == "" {
		return nil // the tasks are the ranks of the gompirun above
	}
	tasks, err := strconv.Atoi(s.Getenv("SLURM_STEP_NUM_TASKS"))
	if err != nil || tasks < 2 || s.Getenv("SLURM_STEP_ID") == "" {
		return nil
	}
	if s.Getenv("SLURM_PROCID") != "0" {
		return ErrStrayTask // task 0 reports the reason
	}
	return fmt.Errorf("srun has started %d of me, each of which would start the job: want gompirun without srun, or srun -N1 -n1 gompirun", tasks)
}

// ErrStrayTask is the error of all stray tasks but task 0, which reports the reason.
var ErrStrayTask = errors.New("one of several tasks")

// pbs reads the node file of PBS and Torque: one line for each slot.
func (s Surroundings) pbs() (*Allocation, error) {
	file := s.Getenv("PBS_NODEFILE")
	if file == "" {
		return nil, nil
	}
	return s.slotLines("PBS_NODEFILE", file, jobName("PBS job", s.Getenv("PBS_JOBID")))
}

// slotLines reads a file that has one line for each slot.
func (s Surroundings) slotLines(variable, file, from string) (*Allocation, error) {
	a, err := s.file(variable, file, from)
	if err != nil {
		return nil, err
	}
	for i := range a.List.Hosts {
		if h := &a.List.Hosts[i]; h.Bare {
			h.Slots, h.Bare = 1, false
		}
	}
	return a, nil
}

// lsf reads LSF's variables: hosts with their counts or, for large jobs, only a file or words
// with one host for each slot.
func (s Surroundings) lsf() (*Allocation, error) {
	from := jobName("LSF job", s.Getenv("LSB_JOBID"))
	if pairs := strings.Fields(s.Getenv("LSB_MCPU_HOSTS")); len(pairs) > 0 {
		if len(pairs)%2 != 0 {
			return nil, fmt.Errorf("LSB_MCPU_HOSTS=%q: want pairs of a host and its slots", s.Getenv("LSB_MCPU_HOSTS"))
		}
		var items []string
		for i := 0; i < len(pairs); i += 2 {
			items = append(items, hostfile.Counted(pairs[i], pairs[i+1]))
		}
		return listed("LSB_MCPU_HOSTS", items, from)
	}
	if file := s.Getenv("LSB_DJOB_HOSTFILE"); file != "" {
		return s.slotLines("LSB_DJOB_HOSTFILE", file, from)
	}
	if words := strings.Fields(s.Getenv("LSB_HOSTS")); len(words) > 0 {
		return listed("LSB_HOSTS", words, from)
	}
	return nil, nil
}

// gridEngine reads the file of Grid Engine. Its lines begin with a host and its slots; the rest
// is ignored.
func (s Surroundings) gridEngine() (*Allocation, error) {
	file := s.Getenv("PE_HOSTFILE")
	if file == "" {
		return nil, nil
	}
	data, err := s.Read(file)
	if err != nil {
		return nil, fmt.Errorf("PE_HOSTFILE: %w", err)
	}
	var items []string
	for line := range strings.Lines(string(data)) {
		switch f := strings.Fields(line); {
		case len(f) >= 2:
			items = append(items, hostfile.Counted(f[0], f[1]))
		case len(f) == 1:
			return nil, fmt.Errorf("PE_HOSTFILE %s: %q: want a host and its slots", file, f[0])
		}
	}
	return listed("PE_HOSTFILE "+file, items, jobName("Grid Engine job", s.Getenv("JOB_ID")))
}

// listed makes an allocation of items in the form of -H.
func listed(variable string, items []string, from string) (*Allocation, error) {
	list, err := hostfile.ParseList(variable, strings.Join(items, ","))
	if err != nil {
		return nil, err
	}
	return &Allocation{From: from, List: list}, nil
}

func jobName(what, id string) string { return strings.TrimSuffix(what+" "+id, " ") }
