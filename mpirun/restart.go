package mpirun

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/mpirun/internal/plan"
)

// A life is one of the runs of a job that is started again.
type life struct {
	first    time.Time // when the first of them began: the time limit is for all
	restarts int       // since the first
	name     string    // of all of them, to torch scripts
	missing  []int     // hosts whose agents were lost in it
	next     *job      // what comes after it, if anything does
	comes    string    // what to say about that
	told     bool      // which of the user's variables are replaced
}

// secondChance decides whether j, which is over, is followed by another run.
// Whoever ended it by a signal or a time limit wants no other, and what could
// not be started will not start now.
func (j *job) secondChance() {
	mayRestart := j.cause != nil && j.cause.time != 0 && j.restarts < j.spec.Restart.Max
	switch {
	case j.cause == nil || j.interrupts > 0:
	case j.timeLeft() < 0:
		if mayRestart { // the time has run out between two runs
			j.cause.status = statusTimeout
			j.cause.text = fmt.Sprintf("time limit of %v reached, when %s", j.spec.Timeout, j.cause.text)
		}
	case len(j.missing) > 0 && j.spec.Restart.MinNP > 0:
		hosts, programs, err := j.survivors()
		if err != nil {
			j.cause.text += "; " + err.Error()
			return
		}
		j.follow(hosts, programs)
		j.comes = "going on without " + j.lostNames() + ": "
	case mayRestart:
		j.follow(j.hosts, j.programs)
		j.next.restarts++
		j.comes = fmt.Sprintf("restart %d of %d: ", j.next.restarts, j.spec.Restart.Max)
	}
}

// follow makes the next run of j, with a secret and an agent of its own on each
// host: nothing that was sent in the old one can be taken for part of the new.
func (j *job) follow(hosts []hostfile.Host, programs []plan.Program) {
	next := newJob(j.spec, os.Stdout, os.Stderr)
	next.first, next.before = j.first, j.before
	next.source, next.hosts, next.programs = j.source, hosts, programs
	next.restarts, next.name, next.told = j.restarts, j.name, j.told
	next.stdinData, next.meeting = j.stdinData, j.meeting
	j.next = next
}

// survivors returns the hosts that are left, and of each program the ranks that
// it had there.
func (j *job) survivors() ([]hostfile.Host, []plan.Program, error) {
	isLeft := func(host int) bool { return !slices.Contains(j.missing, host) }
	hosts, programs, err := restrict(j.hosts, j.programs, isLeft)
	if err != nil {
		return nil, nil, err
	}
	left := 0
	for i := range programs {
		programs[i].NP = 0
		for _, r := range j.plan.Ranks {
			if r.Prog == i && isLeft(r.Node) {
				programs[i].NP++
				left++
			}
		}
		if programs[i].NP == 0 {
			return nil, nil, fmt.Errorf("no rank of %q is left", programs[i].Name)
		}
	}
	if left < j.spec.Restart.MinNP {
		return nil, nil, fmt.Errorf("ranks left: %d, and -min-np is %d", left, j.spec.Restart.MinNP)
	}
	return hosts, programs, nil
}

// lostNames names the hosts that were lost.
func (j *job) lostNames() string {
	var names []string
	for _, host := range j.missing {
		names = append(names, j.hosts[host].Name)
	}
	return strings.Join(names, ", ")
}

// timeLeft returns what is left of the job's time, which all its runs share.
func (j *job) timeLeft() time.Duration {
	if j.spec.Timeout == 0 {
		return math.MaxInt64
	}
	return time.Until(j.first.Add(j.spec.Timeout))
}

// lifeEnvironment returns the variables by which a program knows that it is
// started again.
func (j *job) lifeEnvironment() []string {
	n := strconv.Itoa(j.restarts)
	return []string{
		env.Restarts + "=" + n, env.TorchRestarts + "=" + n,
		env.TorchMaxRestarts + "=" + strconv.Itoa(j.spec.Restart.Max), env.TorchRunID + "=" + j.name,
	}
}
