package job

import (
	"fmt"
	"slices"
	"time"

	"gompi/mpirun/internal/ctl"
)

// The kernel or ssh notifies launcher and agents when the other has ended, but not when a cable is
// cut, packets are dropped, or a process is stopped. So the launcher looks several times in each
// heartbeat period whether anything has been received from each agent, and sends pings, which
// agents answer. After a period without any message the user is notified. After ctl.Silence periods
// the launcher ends the job, and an agent kills its ranks.
//
// An agent on this machine is not given up: the kernel notifies the launcher when it ends, and
// until then it is only stopped, or gets no processor. The same holds while what stands for an
// agent here, such as ssh, is kept from running.

// beatsPerPeriod is how often an agent is looked at in a heartbeat period.
const beatsPerPeriod = 5

// A pulse is what has been received from an agent.
type pulse struct {
	missed   int           // beats in a row before which nothing had come
	reportAt int           // number of those at which it is reported
	obeys    bool          // something has come since the order to end
	process  Process       // that stands for the agent on this machine; nil before it is looked at
	kept     string        // what keeps that from running: "is stopped"; "" if nothing does
	round    time.Duration // how long the fastest answer took
	pongs    int           // answers
	offset   int64         // the agent's clock minus ours, 0 before the first answer
	given    bool          // the agent has been given up
}

// A heart is what makes the launcher send pings.
type heart struct {
	every  time.Duration
	last   time.Time    // when it has beaten
	ticker *time.Ticker // nil if none beats
	beats  <-chan time.Time
}

// startBeats makes serve call beat from now on.
func (j *Job) startBeats() (stop func()) {
	if j.spec.Heartbeat <= 0 {
		return func() {}
	}
	every := max(j.spec.Heartbeat/beatsPerPeriod, 1)
	j.heart = heart{every: every, last: time.Now(), ticker: time.NewTicker(every)}
	j.heart.beats = j.heart.ticker.C
	return j.heart.ticker.Stop
}

// beat pings all agents and counts for how many beats each has been silent. A beat that comes late
// counts for none: this process was stopped or did not get a processor, and what has come meanwhile
// may not have been read.
func (j *Job) beat() {
	now := time.Now()
	gap := now.Sub(j.heart.last)
	late := gap >= 2*j.heart.every
	j.heart.last = now
	if gap >= j.spec.Heartbeat && j.end.cause == nil { // agents may give it up
		j.notef("gompirun itself did not run for %v: it was stopped, or got no processor", gap.Round(time.Millisecond))
	}
	j.heart.ticker.Reset(j.heart.every)
	for _, h := range j.hosts {
		if h.drained {
			continue
		}
		switch {
		case h.agent.Received():
			j.received(h)
		case !late:
			h.pulse.missed++
			j.silent(h)
		}
	}
	j.sendTo(&ctl.Ping{Sent: j.clock()}, func(h *host) bool { return !h.drained })
}

// received notes that an agent has sent something, and reports it if its silence was reported.
func (j *Job) received(h *host) {
	p := &h.pulse
	if p.reportAt > beatsPerPeriod && p.missed >= beatsPerPeriod && j.end.cause == nil {
		j.notef("%s: heard again after %v", h.name, j.heart.times(p.missed))
	}
	p.missed, p.reportAt, p.kept, p.obeys = 0, beatsPerPeriod, "", j.end.cause != nil
}

// silent notifies the user of an agent from which nothing is received, or gives it up. While
// nothing is heard of a host either through which it is reached, that one is who is reported and
// given up: what came last of the two came in one beat or the next.
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

// silentRelay reports whether nothing is heard of a host either through which h is reached.
func (j *Job) silentRelay(h *host) bool {
	return slices.ContainsFunc(h.started.Relays, func(n int) bool {
		return h.behind(n) && !j.hosts[n].drained && j.hosts[n].pulse.missed >= beatsPerPeriod
	})
}

// allSilent reports whether nothing is heard of any host that is reached through h.
func (j *Job) allSilent(h *host) bool {
	return !slices.ContainsFunc(j.hosts, func(o *host) bool {
		return o.behind(h.index) && !o.drained && o.pulse.missed < beatsPerPeriod
	})
}

// look looks at the process that stands for an agent on this machine.
func (j *Job) look(h *host) {
	p := &h.pulse
	if h.started.PID == 0 {
		return
	}
	if p.process == nil {
		p.process = j.system.Process(h.started.PID)
	}
	p.kept = p.process.Look()
}

// silenceLimit returns whether an agent is given up when it is silent, and after how many beats.
// One that is to end its ranks may take the time that they have for it, once it knows.
func (j *Job) silenceLimit(h *host) (limit bool, most int) {
	switch {
	case j.end.cause == nil:
		return !h.here() && h.pulse.kept == "", ctl.Silence * beatsPerPeriod
	case h.pulse.obeys:
		return true, beatsPerPeriod + int(j.end.grace/j.heart.every)
	}
	return true, beatsPerPeriod
}

// reportSilence reports that an agent sends nothing, and what is known of the reason.
func (j *Job) reportSilence(h *host, ends bool) {
	text := fmt.Sprintf("%s: nothing heard for %v", h.name, j.heart.times(h.pulse.missed))
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

// Kept implements stall.Agent: it returns what keeps the agent, or what stands for it on this
// machine, from running.
func (h *host) Kept() string {
	if h.pulse.kept == "" {
		return ""
	}
	who := "the agent"
	if !h.here() {
		who = h.started.Via
	}
	return fmt.Sprintf("%s%s %s", who, h.started.Process(), h.pulse.kept)
}

// giveUp ends the job because an agent does not answer. It kills the connection to the agent, or
// the agent and its ranks where they are on this machine. On another host the agent, or its
// watchdog, kills the ranks.
func (j *Job) giveUp(h *host, why string) {
	h.pulse.given = true
	reason := "the host or the agent on it is frozen, or the network is cut"
	switch kept := h.Kept(); {
	case kept != "":
		reason = kept
	case h.here():
		reason = fmt.Sprintf("the agent%s does not answer", h.started.Process())
	}
	h.agent.Kill()
	l := j.lossOf(h, j.allSilent(h))
	j.lose(l, fmt.Sprintf("%s: %s: %s; %s lost with it%s", h.name, why, reason, ranksText(l.ranks()), l.through()))
}

// clock returns nanoseconds since 1970 by a clock that is not set while the job runs. Those of
// agents, which start with it, are such, too.
func (j *Job) clock() int64 { return j.begun.UnixNano() + int64(time.Since(j.begun)) }

// ping asks the agent for an answer, and for its clock.
func (h *host) ping(now int64) { h.Send(&ctl.Ping{Sent: now}) }

// firstPings is how many pings are sent at once at first.
const firstPings = 5

// ponged takes an agent's answer. The difference of the clocks is taken from the fastest answer: it
// is wrong by half of that round trip at most.
func (h *host) ponged(m *ctl.Pong, now int64) {
	p := &h.pulse
	if p.pongs++; p.pongs < firstPings && h.started != nil && !h.here() {
		h.ping(now) // the first answers may be slow: ranks are being started
	}
	round := time.Duration(now - m.Sent)
	if h.here() || round < 0 || p.round != 0 && round >= p.round {
		return
	}
	p.round = max(round, 1)
	p.offset = m.Now - (m.Sent + int64(round)/2)
}

// ours converts a time of the agent's clock to this host's, so that failures on several hosts can
// be put in order.
func (p *pulse) ours(t int64) int64 { return t - p.offset }
