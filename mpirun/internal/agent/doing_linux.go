package agent

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/pmi"
	"gompi/internal/seg"
	"gompi/internal/world"
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
				calls[i].Peer = int(a.originals.named(world.Rank(calls[i].Peer)))
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
			t := a.stats.Totals(p.index)
			c.Stats, c.Calls, c.Bytes, c.InCalls = true, t.Calls, t.Bytes, max(0, time.Duration(t.Time)+d.Since)
		}
	}
	m.Counts = true
}

// mostLookedInto is the most ranks of a host that are reported in detail.
const mostLookedInto = 8

// A nonGompiRank is a rank whose program does not use gompi, as far as the agent knows.
type nonGompiRank struct {
	*ctl.RankDoing
	process int
	output  string // the last lines of its output
}

// nonGompiRanks returns the ranks of m without gompi.
func (a *agent) nonGompiRanks(m *ctl.Doing) (found []nonGompiRank) {
	for i := range m.Ranks {
		p := a.ranks[a.local[m.Ranks[i].Rank]]
		if a.segment.State(p.local()) == seg.Starting && p.pmi.State() == pmi.Silent {
			found = append(found, nonGompiRank{&m.Ranks[i], p.pid, p.output.Last()})
		}
	}
	return found
}

// nonGompiWorker returns the process that does the work of a rank. ok is false for a process with
// gompi, as far as the agent knows.
func nonGompiWorker(process int) (pid int, ok bool) {
	for range 10 {
		if pid = proc.Worker(process); !proc.UsesGompi(pid) {
			return pid, true
		}
		if unix.Kill(pid, 0) == nil { // else a shell's child has ended meanwhile
			break
		}
	}
	return pid, false
}

// lookInto adds the kernel's and, with details, py-spy's knowledge of ranks, without interrupting
// them. It may block: the kernel may wait for the memory of a process, and py-spy takes a second.
func lookInto(ranks []nonGompiRank, details bool) {
	var spies sync.WaitGroup
	left := mostLookedInto
	for _, d := range ranks {
		pid, ok := nonGompiWorker(d.process)
		if !ok {
			continue
		}
		if d.Text = "is outside gompi: " + proc.Doing(pid); d.Kept != proc.Starves {
			d.Kept = "" // Doing has reported it
		}
		if left--; left < 0 || !details {
			continue
		}
		d.Details = proc.Times(pid)
		if d.output != "" {
			d.Details += "\nits last output:\n" + d.output
		}
		spies.Go(func() { d.Details += proc.PythonStack(pid) })
	}
	spies.Wait()
}
