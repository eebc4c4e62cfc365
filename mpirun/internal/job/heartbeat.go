package job

import (
	"fmt"
	"time"

	"gompi/mpirun/internal/ctl"
)

// The kernel or ssh tells launcher and agents when the other has ended, but not when a cable is
// cut, packets are dropped, or a process is stopped. So the launcher sends a ping at every beat,
// which agents answer. After ctl.Silence beats without any message, the launcher ends the job, and
// an agent kills its ranks.

// A pulse is what has been heard of an agent.
type pulse struct {
	excused bool          // nothing may have come, as this process slept
	mute    int           // beats in a row before which nothing had come
	round   time.Duration // how long the fastest answer took
	pongs   int           // answers
	offset  int64         // the agent's clock minus ours, 0 before the first answer
	given   bool          // the agent has been given up
}

// A heart is what makes the launcher send pings.
type heart struct {
	ticker *time.Ticker // nil if none beats
	beats  <-chan time.Time
}

// startBeats makes serve call beat from now on.
func (j *Job) startBeats() (stop func()) {
	if j.spec.Heartbeat <= 0 {
		return func() {}
	}
	j.heart.ticker = time.NewTicker(j.spec.Heartbeat)
	j.heart.beats = j.heart.ticker.C
	j.excuseAgents()
	return j.heart.ticker.Stop
}

// excuseAgents forgets the silence of agents until now: this process was stopped.
func (j *Job) excuseAgents() {
	for _, h := range j.hosts {
		h.pulse.excused = true
	}
}

// beat pings all agents and gives up those that are silent. It counts beats, not time: a beat that
// comes late, because this process was stopped or did not get a processor, counts once, since
// messages that have come meanwhile may not have been read.
func (j *Job) beat() {
	j.heart.ticker.Reset(j.spec.Heartbeat)
	for _, h := range j.hosts {
		p := &h.pulse
		if h.drained || p.given {
			continue
		}
		if p.mute++; h.link.Heard() || p.excused {
			p.mute, p.excused = 0, false
		}
		if p.mute == ctl.Silence {
			j.giveUp(h)
			continue
		}
		h.ping(j.clock())
	}
}

// giveUp ends the job because an agent is silent. It kills the connection to the agent; on its host
// the agent, or its watchdog, kills the ranks.
func (j *Job) giveUp(h *host) {
	h.pulse.given = true
	c := &cause{status: StatusFailed, text: fmt.Sprintf("%s: nothing heard for %v: the host or the agent on it is frozen, or the network is cut; %s lost with it",
		h.name, ctl.Silence*j.spec.Heartbeat, ranksText(h.ranks))}
	j.later.agents = append(j.later.agents, c)
	j.endFor(c)
	h.link.Kill()
}

// clock returns nanoseconds since 1970 by a clock that nobody sets while the job runs. Those of
// agents, which start with it, are such, too.
func (j *Job) clock() int64 { return j.begun.UnixNano() + int64(time.Since(j.begun)) }

// ping asks the agent for an answer, and for its clock.
func (h *host) ping(now int64) { h.Send(&ctl.Ping{Sent: now}) }

// manyPongs is how many pings are sent at once at first.
const manyPongs = 5

// ponged takes an agent's answer. The difference of the clocks is taken from the fastest answer: it
// is wrong by half of that round trip at most.
func (h *host) ponged(m *ctl.Pong, now int64) {
	p := &h.pulse
	if p.pongs++; p.pongs < manyPongs && h.agent != nil && !h.here() {
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
