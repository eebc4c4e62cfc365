package agent

import (
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// A launcher on another host can hang, or the network to it fail, without closing the connection:
// then the agent kills its ranks. An agent can be stopped while its ranks run: then its watchdog
// kills them and the agent. So the launcher sends pings, which the agent answers, and the agent
// sends heartbeats to its watchdog.

// A pulse is the state of the heartbeats from the launcher and to the watchdog.
type pulse struct {
	every            time.Duration // period of the launcher's pings, 0 for never
	lastWord         time.Time     // time of the launcher's last message
	next             time.Time     // when to notify the watchdog again
	asleep           bool          // the launcher has been stopped by its user
	launcherTimedOut bool          // the launcher has been given up because of its silence
	watchdog         int           // the pipe to the watchdog, -1 if there is none
}

// startPulse begins to expect pings.
func (a *agent) startPulse(every time.Duration) {
	a.every, a.lastWord = every, time.Now()
	if every > 0 {
		a.next = a.lastWord
	}
}

// beat gives up a launcher that has been silent for too long, and renews the promise to the
// watchdog. If this process itself was stopped, the launcher's time starts again.
func (a *agent) beat(now time.Time) {
	if a.every <= 0 || now.Before(a.next) {
		return
	}
	if now.Sub(a.next) > a.every {
		a.lastWord = now
	}
	a.next = now.Add(a.every / 2)
	if a.watchdog >= 0 {
		proc.Promise(a.watchdog, ctl.Silence*a.every)
	}
	if now.Sub(a.lastWord) >= ctl.Silence*a.every && !a.asleep && !a.orphaned {
		a.launcherTimedOut = true
		a.launcherLost()
	}
}

// loseWatchdog ends this agent, because without its watchdog nothing would clean up after it.
func (a *agent) loseWatchdog() {
	a.loop.Forget(a.watchdog)
	unix.Close(a.watchdog)
	a.watchdog = -1
	a.launcherLost()
}

func (a *agent) pong(m *ctl.Ping) {
	a.awaken()
	a.report(&ctl.Pong{Sent: m.Sent, Now: seg.Unix(seg.Now())})
}
