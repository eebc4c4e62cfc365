package agent

import (
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/stall"
)

// A stallState is the agent's knowledge of ranks that wait for long.
type stallState struct {
	gathered   bool      // the ranks have the cards of all ranks
	stalled    bool      // the launcher has been notified that ranks wait
	nextLook   time.Time // when to look at the recorders again
	nextKept   time.Time // when to look at the processes again
	nextStacks time.Time // the next deadline for a rank to send its stacks
	looks      int       // answers that wait for background work
	asksGPUs   bool      // one of them is asking for the GPUs' use, perhaps on a file system that hangs
}

// doing reads the ranks' current calls from shared memory. The ranks take no part: they may be
// stuck.
func (a *agent) doing() *ctl.Doing {
	m := &ctl.Doing{}
	now := seg.Now()
	for _, p := range a.ranks {
		if p.pid == 0 || p.ended {
			continue
		}
		d := ctl.RankDoing{Rank: p.Rank.Rank, PID: p.pid, Kept: a.keptFrom(p)}
		if joined := a.segment.PID(p.local()); joined != 0 {
			d.PID = joined // p.pid is a wrapper, or the same
		}
		mpi := a.segment.CallsMPI(p.local())
		switch state := a.segment.State(p.local()); {
		case p.pmi.State() != pmi.Silent:
			d.Text = p.pmi.Doing()
		case state == seg.Starting:
			d.Text = "has not called Init"
		case state != seg.Joined && mpi:
			d.Text = "has called MPI_Finalize"
		case state != seg.Joined:
			d.Text = "has closed its communicators"
		case !a.gathered && p.hasCard:
			d.Text, d.Since = "waits in Init for all others", time.Duration(max(1, now-p.cardAt))
			if mpi {
				d.Text = "waits in MPI_Init for all others"
			}
		default:
			calls := a.segment.Calls(p.local())
			for i := range calls { // a root is less than np, and replacements begin there
				calls[i].Peer = a.originals.Original(calls[i].Peer)
			}
			site := func(number uint64) string { return a.segment.Site(p.local(), number) }
			var names seg.CommNames
			if mpi {
				names = func(comm uint64) seg.CommName { return a.segment.Name(p.local(), comm) }
			}
			stall.Describe(&d, calls, site, names, now)
		}
		m.Ranks = append(m.Ranks, d)
	}
	return m
}

// look reports to the launcher when a rank has been in one call for too long, and when that has
// ended. It reads shared memory; the ranks send nothing.
func (a *agent) look(now time.Time) {
	if a.segment == nil || a.launch.StallWarning <= 0 {
		return
	}
	over := a.alive == 0
	if over {
		a.nextLook = time.Time{}
	}
	if over && !a.stalled || !over && now.Before(a.nextLook) {
		return
	}
	period := a.launch.StallWarning
	longest := time.Duration(0)
	for _, d := range a.doing().Ranks {
		longest = max(longest, d.Since)
	}
	if stalled := longest >= period; stalled != a.stalled {
		a.stalled = stalled
		a.report(&ctl.Stalled{Since: longest, On: stalled})
	}
	if !over {
		a.nextLook = now.Add(min(max(period/4, 10*time.Millisecond), idlePeriod))
	}
}

// count adds the ranks' resource usage and counters to m.
func (a *agent) count(m *ctl.Doing) {
	for i := range m.Ranks {
		d := &m.Ranks[i]
		p := a.ranks[a.local[d.Rank]]
		c := &d.Counts
		c.CPU, c.RSS = proc.Used(d.PID)
		if calls := a.segment.Calls(p.local()); len(calls) > 0 {
			c.Recorded = calls[len(calls)-1].Number
		}
		if a.stats != nil {
			c.Stats, c.Total = true, a.stats.Totals(p.index)
			c.Total.Time = max(0, c.Total.Time+int64(d.Since))
		}
	}
	m.Counts = true
}

// nonGompiRanks returns the ranks of m without gompi.
func (a *agent) nonGompiRanks(m *ctl.Doing) (found []stall.Outsider) {
	for i := range m.Ranks {
		p := a.ranks[a.local[m.Ranks[i].Rank]]
		if a.segment.State(p.local()) == seg.Starting && p.pmi.State() == pmi.Silent {
			found = append(found, stall.Outsider{RankDoing: &m.Ranks[i], Process: p.pid, Output: p.output.Last()})
		}
	}
	return found
}

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
		text := ""
		for _, pid := range pids {
			text += proc.Threads(pid) + proc.PythonStack(pid)
		}
		return func() { a.report(&ctl.Stacks{Rank: p.Rank.Rank, Text: text}) }
	})
}
