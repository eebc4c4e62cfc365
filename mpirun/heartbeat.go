package mpirun

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"gompi/mpirun/internal/ctl"
)

// Launcher and agents hear of each other's end from the kernel or from ssh: but
// not if a cable is cut, packets are dropped, or a process is stopped. So the
// launcher sends a ping at every beat, which agents answer. Who hears nothing at
// all for silence beats gives the other up: the launcher ends the job, an agent
// kills its ranks.

// silence is how many beats may pass without a word.
const silence = 3

// pulse is what a link knows of its agent's life. The reader of the link sets
// heard; everything else is the job's.
type pulse struct {
	heard  atomic.Bool   // something has come since the last beat
	mute   int           // beats in a row before which nothing had come
	round  time.Duration // how long the fastest answer took
	pongs  int           // answers
	offset int64         // the agent's clock minus ours, 0 before the first answer
	given  bool          // the agent has been given up
}

// A listener notes when something comes.
type listener struct {
	io.Reader
	heard *atomic.Bool
}

func (l listener) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	l.heard.Store(true)
	return n, err
}

// startBeats has serve call beat from now on.
func (j *job) startBeats() (stop func()) {
	if j.spec.Heartbeat <= 0 {
		return func() {}
	}
	j.heart = time.NewTicker(j.spec.Heartbeat)
	j.beats = j.heart.C
	for _, l := range j.links {
		l.heard.Store(true)
	}
	return j.heart.Stop
}

// beat pings all agents and gives up those that are silent. It counts beats and not
// time: one that comes late, because this process was stopped or kept from running, is
// one, and what has come meanwhile may not have been read. The next comes no sooner for
// that.
func (j *job) beat() {
	j.heart.Reset(j.spec.Heartbeat)
	for _, l := range j.links {
		if l.drained || l.given {
			continue
		}
		if l.mute++; l.heard.Swap(false) {
			l.mute = 0
		}
		if l.mute == silence {
			j.giveUp(l)
			continue
		}
		l.ping()
	}
}

// giveUp ends the job because an agent is silent. What stands for the agent
// here is killed; on its host the agent, or who watches it, kills the ranks.
func (j *job) giveUp(l *link) {
	l.given = true
	c := &cause{status: statusFailed, text: fmt.Sprintf("%s: nothing heard for %v: the host or the agent on it is frozen, or the network is cut; %s lost with it",
		l.host, silence*j.spec.Heartbeat, ranksText(l.ranks))}
	j.sequel.lost = append(j.sequel.lost, c.text)
	j.end(c)
	l.agent.Kill()
}

// ping asks the agent for a sign of life, and for its clock.
func (l *link) ping() { l.Send(&ctl.Ping{Sent: time.Now().UnixNano()}) }

// manyPongs is how many answers come at once at first.
const manyPongs = 5

// ponged notes an agent's answer. Of the clocks' difference the one is believed
// whose answer came fastest: half of that time is how wrong it can be.
func (l *link) ponged(m *ctl.Pong, now int64) {
	if l.pongs++; l.pongs < manyPongs && l.agent != nil && !l.here() {
		l.ping() // the first answers may be slow: ranks are being started
	}
	round := time.Duration(now - m.Sent)
	if l.here() || round < 0 || l.round != 0 && round >= l.round {
		return
	}
	l.round = max(round, 1)
	l.offset = m.Now - (m.Sent + int64(round)/2)
}

// here reports whether the agent is on this machine, by whose clock it goes.
func (l *link) here() bool { return l.agent != nil && l.agent.Here() }

// ours turns a time of the agent's clock into one of ours, so that failures on
// several hosts can be put in order.
func (l *link) ours(t int64) int64 { return t - l.offset }
