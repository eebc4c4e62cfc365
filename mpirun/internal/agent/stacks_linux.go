package agent

import (
	"strings"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// stackTime is the time for a rank to send its goroutines' stacks.
const stackTime = 2 * time.Second

// askStacks asks ranks for their stacks. Joined ranks answer themselves. For the others, and for
// ranks that do not answer in time, the kernel reports the system calls of their threads, and
// py-spy Python's stacks. No signal is sent: it might kill a program.
func (a *agent) askStacks(ranks []int) {
	for _, r := range ranks {
		i, ours := a.local[r]
		if !ours || a.ranks[i].pid == 0 { // there is no segment yet
			continue
		}
		p := a.ranks[i]
		if a.segment.State(p.local()) == seg.Joined && p.boot >= 0 && a.launch.Stacks {
			p.asked = time.Now().Add(stackTime)
			a.send(p, wire.Append(nil, &wire.Describe{}))
		} else {
			a.reportThreads(p)
		}
	}
}

// stacked passes on a rank's answer. A program in C answers without stacks, which a debugger then
// reads.
func (a *agent) stacked(p *process, m *wire.Stacks) {
	switch {
	case p.asked.IsZero():
		return
	case len(m.Text) > 0:
		a.report(&ctl.Stacks{Rank: p.Rank.Rank, Text: string(m.Text)})
	default:
		pid := a.segment.PID(p.local())
		p.read = true
		a.loop.Aside(func() func() {
			text := proc.Frames(pid)
			return func() {
				p.read = false
				a.report(&ctl.Stacks{Rank: p.Rank.Rank, Text: text})
			}
		})
	}
	p.asked = time.Time{}
}

// lateStacks reports the kernel's knowledge of ranks that have not answered in time, and sets
// nextStacks to the next deadline.
func (a *agent) lateStacks(now time.Time) {
	a.nextStacks = time.Time{}
	for _, p := range a.ranks {
		switch {
		case p.asked.IsZero() || p.ended:
		case !now.Before(p.asked):
			p.asked = time.Time{}
			a.reportThreads(p)
		case a.nextStacks.IsZero() || p.asked.Before(a.nextStacks):
			a.nextStacks = p.asked
		}
	}
}

func (a *agent) reportThreads(p *process) {
	if p.ended {
		return
	}
	pids := []int{p.pid}
	if joined := a.segment.PID(p.local()); joined != 0 && joined != p.pid {
		pids = append(pids, joined) // p.pid is a wrapper
	}
	a.loop.Aside(func() func() {
		var text strings.Builder
		for _, pid := range pids {
			text.WriteString(proc.Threads(pid) + proc.PythonStack(pid))
		}
		return func() { a.report(&ctl.Stacks{Rank: p.Rank.Rank, Text: text.String()}) }
	})
}
