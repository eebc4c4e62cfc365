package job

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/stall"
)

// questions are users' questions that wait for answers of agents.
type questions struct {
	served  bool               // agents can answer
	round   stall.Round        // asks all agents for the calls of their ranks
	waiting []monitor.Describe // for the round's end
}

// askedFor answers a question, or forwards it to agents.
func (j *Job) askedFor(q monitor.Question) {
	switch q := q.(type) {
	case monitor.Describe:
		j.questions.waiting = append(j.questions.waiting, q)
		if j.questions.round.UnderWay() {
			return
		}
		var agents []stall.Agent
		if j.questions.served {
			agents = j.surveyed()
		}
		if j.questions.round.Ask(agents, &ctl.Ask{Counts: true}) {
			j.describe()
		}
	case monitor.WhereIs:
		j.find(q)
	case monitor.Signal:
		j.ordered(q)
	}
}

// leaveQuestions notes that agents answer no more, and answers pending questions.
func (j *Job) leaveQuestions() {
	j.questions.served = false
	if j.questions.round.UnderWay() {
		j.describe()
	}
	for _, h := range j.hosts {
		j.answerQuestions(h, &ctl.Doing{})
	}
}

// state returns the job's state.
func (j *Job) state() monitor.State {
	switch {
	case j.end.cause != nil:
		return monitor.Ending
	case j.nodes == 0 || j.upHosts < j.nodes:
		return monitor.Starting
	case j.allDrained():
		return monitor.Ending
	case j.watch.Waiting():
		return monitor.Stalled
	}
	return monitor.Running
}

// Over describes the job after Run, which has returned status.
func (j *Job) Over(status int) monitor.Job {
	for j.attempt.next != nil {
		j = j.attempt.next
	}
	d := j.description()
	d.State, d.Status, d.User = monitor.Ended, status, os.Geteuid()
	if status != 0 {
		d.State = monitor.Failed
	}
	return d
}

// description describes the job, without its ranks.
func (j *Job) description() monitor.Job {
	d := monitor.Job{
		ID: j.attempt.ids[0], Reruns: j.attempt.ids[1:], PID: os.Getpid(),
		Begun: float64(j.attempt.first.UnixNano()) / 1e9, Age: time.Since(j.attempt.first).Seconds(),
		Restarts: j.attempt.restarts, State: j.state(), Counts: j.spec.Stats.On(), Programs: []string{},
		Hosts: []string{}, Lines: []string{}, GPUs: map[string][]topo.Device{},
	}
	for _, p := range j.spec.Programs {
		d.Programs = append(d.Programs, strings.Join(p.Argv, " "))
	}
	if j.end.cause != nil {
		d.Why, _, _ = strings.Cut(j.end.cause.Text, "\n")
	}
	if j.plan != nil {
		d.Size = len(j.plan.Ranks)
	}
	for _, h := range j.hosts {
		if len(h.ranks) > 0 {
			d.Hosts = append(d.Hosts, h.Name())
		}
	}
	return d
}

// describe answers the questions about the job, and ends the round.
func (j *Job) describe() {
	d := j.description()
	r := &j.questions.round
	d.Lines = append(d.Lines, j.watch.Lines(r)...)
	r.Each(func(h stall.Agent, m *ctl.Doing) {
		if g, err := topo.Parse(m.GPUs); err == nil && g.Trouble == "" && len(g.Devices) > 0 {
			d.GPUs[h.Name()] = g.Devices
		}
		for i := range m.Ranks {
			rank := j.rank(h.Name(), &m.Ranks[i])
			d.Ranks, d.Since = append(d.Ranks, rank), max(d.Since, rank.Since)
		}
	})
	waiting := j.questions.waiting
	j.questions = questions{served: j.questions.served}
	for _, q := range waiting {
		q.Answer(d)
	}
}

// rank describes a rank of a host.
func (j *Job) rank(host string, m *ctl.RankDoing) monitor.Rank {
	r := monitor.Rank{
		Rank: j.recover.Original(m.Rank), Host: host, PID: m.PID, Doing: m.Text, Site: m.Site, Since: m.Since.Seconds(),
		Said: m.Details, Kept: m.Kept,
		CPU: m.Counts.CPU.Seconds(), Resident: m.Counts.RSS, Recorded: m.Counts.Recorded,
	}
	if c := &m.Counts; c.Stats {
		r.Counts = monitor.CountsOf(&c.Total)
	}
	return r
}

// counted takes an agent's answer to a question with counts.
func (j *Job) counted(h *host, m *ctl.Doing) {
	if j.questions.round.Answered(h, m) {
		j.describe()
	}
}

// find forwards a question to the agent of the rank's host, which knows the rank's process.
func (j *Job) find(q monitor.WhereIs) {
	for _, h := range j.hosts {
		for _, r := range h.ranks {
			if r == j.recover.Original(q.Rank) && !h.drained && j.questions.served {
				h.asking = append(h.asking, q)
				h.Send(&ctl.Ask{Counts: true})
				return
			}
		}
	}
	text := "no rank runs yet"
	if j.nodes > 0 {
		text = fmt.Sprintf("rank %d does not run: the job has %d ranks", q.Rank, len(j.plan.Ranks))
	}
	q.Answer(monitor.Whereabouts{Err: text})
}

// answerQuestions answers the questions about ranks of h.
func (j *Job) answerQuestions(h *host, m *ctl.Doing) {
	for _, q := range h.asking {
		w := monitor.Whereabouts{Err: fmt.Sprintf("rank %d on %s has ended", q.Rank, h.Name())}
		for _, r := range m.Ranks {
			if r.Rank == j.recover.Current(q.Rank) {
				w = monitor.Whereabouts{Host: h.Name(), PID: r.PID, Login: h.Started.Login}
				if !h.Here() && w.Login == nil {
					w.Err = fmt.Sprintf("rank %d is process %d on %s, where gompirun did not log in: run the debugger there", q.Rank, r.PID, h.Name())
				}
			}
		}
		q.Answer(w)
	}
	h.asking = nil
}

// ordered has the effect of a signal.
func (j *Job) ordered(q monitor.Signal) {
	if q.Signal == syscall.SIGKILL {
		j.killed()
	} else {
		j.signalled(q.Signal)
	}
	o := monitor.Order{}
	switch q.Signal {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL:
		limit := j.end.grace + agentEndTime + agentEndTime + killTime + deadlineReaderTime
		o = monitor.Order{Ends: true, Limit: limit.Seconds()}
	}
	q.Answer(o)
}
