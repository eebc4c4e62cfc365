package job

import (
	"fmt"
	"time"

	"gompi/mpirun/internal/ctl"
)

// Launcher and agents hear of each other's end from the kernel or from ssh: but
// not if a cable is cut, packets are dropped, or a process is stopped. So the
// launcher sends a ping at every beat, which agents answer. Who hears nothing at
// all for ctl.Silence beats gives the other up: the launcher ends the job, an agent
// kills its ranks.

// A pulse is what is known of an agent's life.
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

// startBeats has serve call beat from now on.
func (j *Job) startBeats() (stop func()) {
	if j.spec.Heartbeat <= 0 {
		return func() {}
	}
	j.heart.ticker = time.NewTicker(j.spec.Heartbeat)
	j.heart.beats = j.heart.ticker.C
	j.excuseAgents()
	return j.heart.ticker.Stop
}

// excuseAgents has nobody given up for what was not heard until now.
func (j *Job) excuseAgents() {
	for _, h := range j.hosts {
		h.pulse.excused = true
	}
}

// beat pings all agents and gives up those that are silent. It counts beats and not
// time: one that comes late, because this process was stopped or kept from running, is
// one, and what has come meanwhile may not have been read. The next comes no sooner for
// that.
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
		h.ping()
	}
}

// giveUp ends the job because an agent is silent. What stands for the agent
// here is killed; on its host the agent, or who watches it, kills the ranks.
func (j *Job) giveUp(h *host) {
	h.pulse.given = true
	c := &cause{status: StatusFailed, text: fmt.Sprintf("%s: nothing heard for %v: the host or the agent on it is frozen, or the network is cut; %s lost with it",
		h.name, ctl.Silence*j.spec.Heartbeat, ranksText(h.ranks))}
	j.later.agents = append(j.later.agents, c)
	j.endFor(c)
	h.link.Kill()
}

// ping asks the agent for a sign of life, and for its clock.
func (h *host) ping() { h.Send(&ctl.Ping{Sent: time.Now().UnixNano()}) }

// manyPongs is how many answers come at once at first.
const manyPongs = 5

// ponged notes an agent's answer. Of the clocks' difference the one is believed
// whose answer came fastest: half of that time is how wrong it can be.
func (h *host) ponged(m *ctl.Pong, now int64) {
	p := &h.pulse
	if p.pongs++; p.pongs < manyPongs && h.agent != nil && !h.here() {
		h.ping() // the first answers may be slow: ranks are being started
	}
	round := time.Duration(now - m.Sent)
	if h.here() || round < 0 || p.round != 0 && round >= p.round {
		return
	}
	p.round = max(round, 1)
	p.offset = m.Now - (m.Sent + int64(round)/2)
}

// ours turns a time of the agent's clock into one of ours, so that failures on
// several hosts can be put in order.
func (p *pulse) ours(t int64) int64 { return t - p.offset }
