package agent

import (
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/watchdog"
)

// A launcher on another host, or the way to it, can fall silent without a word:
// then the agent kills its ranks on its own. And an agent can be stopped, while
// its ranks run on: then its warden kills it and them. So the launcher sends
// pings, which the agent answers, and the agent tells its warden that it lives.

// A pulse is what the agent knows of the launcher's life, and its warden of its
// own.
type pulse struct {
	every            time.Duration // how often the launcher sends a ping, 0 for never
	lastWord         time.Time     // when something last came from it
	next             time.Time     // when the warden has to be told again
	asleep           bool          // the launcher has been stopped by its user
	launcherTimedOut bool          // it has been given up, because it is silent
	warden           int           // the pipe to the warden, -1 if there is none
}

// startPulse begins to expect pings.
func (a *agent) startPulse(every time.Duration) {
	a.every, a.lastWord = every, time.Now()
	if every > 0 {
		a.next = a.lastWord
	}
}

// beat looks whether the launcher is still there, unless this process itself was
// stopped for a while, and tells the warden that the agent is.
func (a *agent) beat(now time.Time) {
	if a.every <= 0 || now.Before(a.next) {
		return
	}
	if now.Sub(a.next) > a.every {
		a.lastWord = now
	}
	a.next = now.Add(a.every / 2)
	if a.warden >= 0 {
		watchdog.Promise(a.warden, ctl.Silence*a.every)
	}
	if now.Sub(a.lastWord) >= ctl.Silence*a.every && !a.asleep && !a.orphaned {
		a.launcherTimedOut = true
		a.orphan()
	}
}

// loseWarden ends this agent, since nobody would outlive it any more.
func (a *agent) loseWarden() {
	a.forget(a.warden)
	unix.Close(a.warden)
	a.warden = -1
	a.orphan()
}

func (a *agent) pong(m *ctl.Ping) {
	a.asleep = false
	a.report(&ctl.Pong{Sent: m.Sent, Now: time.Now().UnixNano()})
}
