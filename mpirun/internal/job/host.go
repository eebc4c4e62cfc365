package job

import (
	"fmt"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/stall"
)

// A host is the job's knowledge of one host and its agent.
type host struct {
	inventory.Entry
	pulse  pulse
	asking []monitor.WhereIs // users' questions about its ranks

	ranks   []int // on this host
	drained bool  // its work is done
}

func entries(hosts []*host) (all []*inventory.Entry) {
	for _, h := range hosts {
		all = append(all, &h.Entry)
	}
	return all
}

// await waits for the end of some hosts' agents after their channels were closed, or for the
// failure of their start. The result is false after limit.
func (j *Job) await(limit time.Duration, of func(*host) bool) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	for _, h := range j.hosts {
		for of(h) && !h.Gone {
			select {
			case e := <-j.events:
				j.hosts[e.Host].EndedLate(e)
			case s := <-j.signals:
				j.signalled(s)
			case q := <-j.system.Questions:
				j.askedFor(q)
			case <-late.C:
				return false
			}
		}
	}
	return true
}

// someNames names hosts, and counts those beyond the first few.
func someNames(hosts []*host) string {
	var list hostfile.List
	for _, h := range hosts {
		list.Hosts = append(list.Hosts, hostfile.Host{Name: h.Name()})
	}
	return list.Names()
}

// ranksText names a host's ranks.
func ranksText(ranks []int) string {
	switch len(ranks) {
	case 0:
		return "no rank"
	case 1:
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return fmt.Sprintf("%d ranks from %d to %d", len(ranks), ranks[0], ranks[len(ranks)-1])
}

// broadcast sends m to every agent that has ranks.
func (j *Job) broadcast(m ctl.Message) {
	j.sendTo(m, func(h *host) bool { return len(h.ranks) > 0 && !h.drained })
}

// sendTo sends m to the agents of some hosts, together.
func (j *Job) sendTo(m ctl.Message, to func(*host) bool) {
	var hosts []int
	for n, h := range j.hosts {
		if to(h) {
			hosts = append(hosts, n)
		}
	}
	if len(hosts) > 0 {
		j.send(hosts, m)
	}
}

// surveyed returns the hosts with ranks whose agents still answer.
func (j *Job) surveyed() []stall.Agent {
	var hosts []stall.Agent
	for _, h := range j.hosts {
		if len(h.ranks) > 0 && !h.drained {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
