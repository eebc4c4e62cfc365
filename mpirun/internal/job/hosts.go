package job

import (
	"fmt"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
	"gompi/mpirun/internal/inventory"
	"gompi/mpirun/internal/monitor"
	"gompi/mpirun/internal/plan"
	"gompi/mpirun/internal/stall"
)

// A host is the job's knowledge of one host and its agent.
type host struct {
	inventory.Entry
	pulse  pulse
	asking []monitor.WhereIs // users' questions about its ranks

	ranks   []int // on this host
	dead    []*failure.Cause
	drained bool // its work is done
}

// crashed adds the frames of a crash to the cause that it is.
func (h *host) crashed(m *ctl.Drained) {
	for _, c := range h.dead {
		if c.Rank == m.Rank && m.Frames != "" {
			c.Frames, c.Hint = "it crashed in\n  | "+strings.ReplaceAll(m.Frames, "\n", "\n  | "), ""
		}
	}
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

// size sets the slots of each host by -nproc-per-node.
func (j *Job) size(hosts []plan.Host) error {
	for i := range hosts {
		p, err := j.ranksAt(hosts[i].Name)
		if err == nil {
			err = inventory.SetSlots(&hosts[i], p, j.spec.Policy.GPUs, j.Nodes != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ranksAt returns the number of ranks for a host.
func (j *Job) ranksAt(host string) (cmdline.PerHost, error) {
	if j.Nodes == nil {
		return j.spec.PerHost, nil
	}
	var p cmdline.PerHost
	ranks := j.Nodes[host].Ranks
	if ranks == "" {
		return p, nil
	}
	if err := p.Set(ranks); err != nil {
		return p, fmt.Errorf("%s: -nproc-per-node %q: %w", host, ranks, err)
	}
	return p, nil
}

// wantsGPUs reports whether the plan, or its display, depends on GPUs. Finding them takes a
// moment, and seconds if the driver has to load.
func (j *Job) wantsGPUs() bool {
	return j.spec.Report.Map || j.spec.Report.Bindings || j.needsGPUs() || j.spec.PerHost.CountsGPUs() ||
		j.nodesCountGPUs()
}

// nodesCountGPUs reports whether a node's number of ranks is its number of GPUs.
func (j *Job) nodesCountGPUs() bool {
	for _, n := range j.Nodes {
		if (cmdline.PerHost{Of: n.Ranks}).CountsGPUs() {
			return true
		}
	}
	return false
}

// needsGPUs reports whether ranks get GPUs, or are bound near them.
func (j *Job) needsGPUs() bool { return j.spec.Policy.GPUs > 0 || j.spec.Policy.BindTo == plan.BindGPU }

// reportGPUs reports why a host's GPUs are unknown or unused: always if the job needs them,
// otherwise with -v.
func (j *Job) reportGPUs(h *inventory.Entry) {
	for _, w := range h.GPUs.Warnings {
		j.notef("%s: %s", h.Name(), w)
	}
	switch {
	case h.GPUs.Trouble == "":
	case j.needsGPUs() && len(h.GPUs.Devices) == 0:
		j.notef("%s: no GPU is known: %s", h.Name(), h.GPUs.Trouble)
	default:
		j.verbosef("%s: of GPUs only what the kernel tells is known: %s", h.Name(), h.GPUs.Trouble)
	}
}

// addGPUs adds to each host the GPUs for its ranks.
func (j *Job) addGPUs(hosts []plan.Host) (err error) {
	for i, h := range j.hosts {
		own, programs := j.environAt(h.Name())
		if hosts[i].GPUs, err = h.PlanGPUs(own, programs, j.needsGPUs(), j.notef); err != nil {
			return err
		}
	}
	return nil
}
