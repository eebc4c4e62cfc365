package job

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/internal/env"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/failure"
	"gompi/mpirun/internal/plan"
)

// An attempt is one run of a job that may be started again.
type attempt struct {
	first            time.Time     // beginning of the first run: the time limit is for all runs
	runs             int           // runs since the first
	restarts         int           // runs that count for -max-restarts
	ids              []string      // of all runs, including this one
	name             string        // the job's name for torch scripts
	missing          []int         // hosts whose agents were lost in this run
	next             *Job          // next run, if any
	nextReport       string        // report about the next run
	reportedReplaced bool          // the replaced variables are reported
	takes            cmdline.Stdin // ranks of this run that get standard input
	tookInput        bool          // some standard input may have been read
	reportedInput    bool          // the user knows that rereading is impossible
}

// secondChance decides whether j, which is over, is started again: not if a signal or a time
// limit has ended j, nor after a failed start. An order to end that comes before a restart
// becomes the cause of the end, instead of the earlier failure.
func (j *Job) secondChance() {
	j.readSignals()
	mayContinue := len(j.attempt.missing) > 0 && j.spec.Restart.MinNP > 0
	mayRestart := j.end.cause != nil && j.end.cause.Time != 0 && j.attempt.restarts < j.spec.Restart.Max
	switch {
	case j.end.cause == nil:
	case j.end.order != nil:
		if order := j.end.order; order != j.end.cause && (mayRestart || mayContinue) {
			j.end.cause.Status, j.end.cause.Text = order.Status, order.Text+", when "+j.end.cause.Text
		}
	case j.timeLeft() < 0:
		if mayRestart { // the time has run out between two runs
			j.end.cause.Status = StatusTimeout
			j.end.cause.Text = fmt.Sprintf("time limit of %v reached, when %s", j.spec.Timeout, j.end.cause.Text)
		}
	case mayContinue:
		hosts, programs, err := j.survivors()
		if err != nil {
			j.end.cause.Text += "; " + err.Error()
			return
		}
		j.follow(hosts, programs)
		j.attempt.nextReport = "continuing without " + j.lostNames() + ": "
	case mayRestart:
		j.follow(j.Hosts, j.Programs)
		j.attempt.next.attempt.restarts++
		j.attempt.nextReport = fmt.Sprintf("restart %d of %d: ", j.attempt.next.attempt.restarts, j.spec.Restart.Max)
	}
}

// follow makes the next attempt of j, with its own secret and agents, so that messages of the two
// attempts cannot be confused.
func (j *Job) follow(hosts []hostfile.Host, programs []plan.Program) {
	next := New(j.spec, j.system)
	next.attempt.first, next.attempt.runs, next.attempt.restarts = j.attempt.first, j.attempt.runs+1, j.attempt.restarts
	next.attempt.ids = append(slices.Clone(j.attempt.ids), next.id)
	next.attempt.name, next.attempt.reportedReplaced = j.attempt.name, j.attempt.reportedReplaced
	next.Source, next.Hosts, next.Programs, next.Nodes = j.Source, hosts, programs, j.Nodes
	next.attempt.tookInput, next.attempt.reportedInput = j.attempt.tookInput, j.attempt.reportedInput
	next.signals, next.stdin, next.statistics = j.signals, j.stdin, j.statistics
	next.out.Begun = j.out.Begun
	j.attempt.next = next
}

// obeyLate gives up the next attempt if the user has ordered the end since the decision.
func (j *Job) obeyLate() (gaveUp bool) {
	j.readSignals()
	if j.attempt.next == nil || j.end.order == nil {
		return false
	}
	j.attempt.next, j.attempt.nextReport, j.later = nil, "", failure.Others{}
	j.end.cause = &failure.Cause{Status: j.end.order.Status, Text: j.end.order.Text + ": the job is not started again"}
	return true
}

// survivors returns the remaining hosts, and the number of each program's ranks there.
func (j *Job) survivors() ([]hostfile.Host, []plan.Program, error) {
	isLeft := func(host int) bool { return !slices.Contains(j.attempt.missing, host) }
	hosts, programs, err := plan.Restrict(j.Hosts, j.Programs, isLeft)
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

// lostNames names the lost hosts.
func (j *Job) lostNames() string {
	var names []string
	for _, host := range j.attempt.missing {
		names = append(names, j.Hosts[host].Name)
	}
	return strings.Join(names, ", ")
}

// timeLeft returns the rest of the job's time limit, which is for all attempts together.
func (j *Job) timeLeft() time.Duration {
	if j.spec.Timeout == 0 {
		return math.MaxInt64
	}
	return time.Until(j.attempt.first.Add(j.spec.Timeout))
}

// attemptEnvironment returns the variables that give a program the number of its attempt.
func (j *Job) attemptEnvironment() []string {
	n := strconv.Itoa(j.attempt.restarts)
	return []string{
		env.Restarts + "=" + n, env.TorchRestarts + "=" + n,
		env.TorchMaxRestarts + "=" + strconv.Itoa(j.spec.Restart.Max), env.TorchRunID + "=" + j.attempt.name,
	}
}
