package job

import (
	"fmt"
	"slices"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
)

// The kernel or ssh notifies launcher and agents of each other's end, but not of a cut cable,
// dropped packets, or a stopped process. So the launcher checks several times in each heartbeat
// period whether data has come from each agent, and sends pings, which agents answer. After a
// silent period the user is notified. After ctl.Silence periods the launcher ends the job, and an
// agent kills its ranks.
//
// An agent on this machine is not given up: the kernel notifies the launcher of its end, and
// until then the agent is only stopped, or lacks a processor. The same holds while an agent's
// local process, such as ssh, cannot run.

// beatsPerPeriod is the number of checks of an agent in a heartbeat period.
const beatsPerPeriod = 5

// A pulse is the state of the messages from an agent.
type pulse struct {
	missed   int           // consecutive beats without data
	reportAt int           // value of missed for the next report
	obeys    bool          // data has come since the order to end
	process  Process       // the agent's local process; nil before the first look
	kept     string        // obstacle to its running: "is stopped"; "" for none
	pongs    int           // answers
	clock    failure.Clock // of the agent
	given    bool          // the agent has been given up
}

// A heart times the launcher's pings.
type heart struct {
	every  time.Duration
	last   time.Time    // time of the last beat
	ticker *time.Ticker // nil without heartbeats
	beats  <-chan time.Time
}

// startBeats makes serve call beat periodically.
func (j *Job) startBeats() (stop func()) {
	if j.spec.Heartbeat <= 0 {
		return func() {}
	}
	every := max(j.spec.Heartbeat/beatsPerPeriod, 1)
	j.heart = heart{every: every, last: time.Now(), ticker: time.NewTicker(every)}
	j.heart.beats = j.heart.ticker.C
	return j.heart.ticker.Stop
}

// beat pings all agents and counts the beats for which each has been silent. A late beat does not
// count: this process was stopped or lacked a processor, and may not have read data that has
// come.
func (j *Job) beat() {
	now := time.Now()
	gap := now.Sub(j.heart.last)
	late := gap >= 2*j.heart.every
	j.heart.last = now
	if gap >= j.spec.Heartbeat && j.end.cause == nil { // agents may give up the launcher
		j.notef("gompirun itself did not run for %v: it was stopped, or got no processor", gap.Round(time.Millisecond))
	}
	j.heart.ticker.Reset(j.heart.every)
	for _, h := range j.hosts {
		if h.drained {
			continue
		}
		switch {
		case h.Agent.Received():
			j.received(h)
		case !late:
			h.pulse.missed++
			j.silent(h)
		}
	}
	j.sendTo(&ctl.Ping{Sent: j.clock()}, func(h *host) bool { return !h.drained })
}

// received notes data from an agent, and reports the end of a reported silence.
func (j *Job) received(h *host) {
	p := &h.pulse
	if p.reportAt > beatsPerPeriod && p.missed >= beatsPerPeriod && j.end.cause == nil {
		j.notef("%s: heard again after %v", h.Name(), j.heart.times(p.missed))
	}
	p.missed, p.reportAt, p.kept, p.obeys = 0, beatsPerPeriod, "", j.end.cause != nil
}

// silent reports a silent agent to the user, or gives it up. If a relay on the way there is
// silent, too, the relay is reported and given up instead: the last data of the two may have come
// one beat apart.
func (j *Job) silent(h *host) {
	p := &h.pulse
	j.look(h)
	if j.end.cause == nil && j.silentRelay(h) {
		return
	}
	limit, most := j.silenceLimit(h)
	if limit && p.missed >= most {
		j.giveUp(h, fmt.Sprintf("nothing heard for %v", j.heart.times(p.missed)))
		return
	}
	if p.missed >= max(p.reportAt, beatsPerPeriod) && j.end.cause == nil {
		p.reportAt = 2 * p.missed
		j.reportSilence(h, limit)
	}
}

// silentRelay reports whether a relay on the way to h is silent, too.
func (j *Job) silentRelay(h *host) bool {
	return slices.ContainsFunc(h.Started.Relays, func(n int) bool {
		return h.Behind(n) && !j.hosts[n].drained && j.hosts[n].pulse.missed >= beatsPerPeriod
	})
}

// allSilent reports whether all hosts behind h are silent.
func (j *Job) allSilent(h *host) bool {
	return !slices.ContainsFunc(j.hosts, func(o *host) bool {
		return o.Behind(h.Index) && !o.drained && o.pulse.missed < beatsPerPeriod
	})
}

// look looks at the local process of an agent.
func (j *Job) look(h *host) {
	p := &h.pulse
	if h.Started.PID == 0 {
		return
	}
	if p.process == nil {
		p.process = j.system.Process(h.Started.PID)
	}
	p.kept = p.process.Look()
}

// silenceLimit reports whether a silent agent is given up, and the number of beats until then. An
// agent with the order to end its ranks may take the time that the ranks have.
func (j *Job) silenceLimit(h *host) (limit bool, most int) {
	switch {
	case j.end.cause == nil:
		return !h.Here() && h.pulse.kept == "", ctl.Silence * beatsPerPeriod
	case h.pulse.obeys:
		return true, beatsPerPeriod + int(j.end.grace/j.heart.every)
	}
	return true, beatsPerPeriod
}

// reportSilence reports a silent agent, and the known reason.
func (j *Job) reportSilence(h *host, ends bool) {
	text := fmt.Sprintf("%s: nothing heard for %v", h.Name(), j.heart.times(h.pulse.missed))
	if kept := h.Kept(); kept != "" {
		text += ": " + kept
	}
	if ends {
		text += fmt.Sprintf("; after %v the job ends", ctl.Silence*j.spec.Heartbeat)
	}
	j.notef("%s", text)
}

// times returns the time of n beats.
func (t *heart) times(n int) time.Duration {
	return (time.Duration(n) * t.every).Round(time.Millisecond)
}

// Kept implements stall.Agent. The result is the obstacle to the running of the agent, or of its
// local process.
func (h *host) Kept() string {
	if h.pulse.kept == "" {
		return ""
	}
	who := "the agent"
	if !h.Here() {
		who = h.Started.Via
	}
	return fmt.Sprintf("%s%s %s", who, h.Started.Process(), h.pulse.kept)
}

// giveUp ends the job because an agent does not answer. giveUp kills the connection to the agent,
// or, on this machine, the agent and its ranks. On another host the agent, or its watchdog, kills
// the ranks.
func (j *Job) giveUp(h *host, why string) {
	h.pulse.given = true
	reason := "the host or the agent on it is frozen, or the network is cut"
	switch kept := h.Kept(); {
	case kept != "":
		reason = kept
	case h.Here():
		reason = fmt.Sprintf("the agent%s does not answer", h.Started.Process())
	}
	h.Agent.Kill()
	l := j.lossOf(h, j.allSilent(h))
	j.lose(l, fmt.Sprintf("%s: %s: %s; %s lost with it%s", h.Name(), why, reason, ranksText(l.ranks()), l.through()))
}

// clock returns nanoseconds since 1970 by a clock that nobody sets while the job runs. Agents,
// which start with the job, have such clocks, too.
func (j *Job) clock() int64 { return j.begun.UnixNano() + int64(time.Since(j.begun)) }

// ping asks the agent for an answer with its clock.
func (h *host) ping(now int64) { h.Send(&ctl.Ping{Sent: now}) }

// firstPings is the number of pings in a row at the beginning.
const firstPings = 5

// ponged takes an agent's answer.
func (h *host) ponged(m *ctl.Pong, now int64) {
	p := &h.pulse
	if p.pongs++; p.pongs < firstPings && h.Started != nil && !h.Here() {
		h.ping(now) // the first answers may be slow: ranks are being started
	}
	if !h.Here() {
		p.clock.Compare(m.Sent, m.Now, now)
	}
}
