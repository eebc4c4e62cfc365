package plan

import (
	"fmt"
	"strings"
)

// listed is the most hosts that a message names; it counts the rest.
const listed = 8

// hostList joins the texts of all hosts, skipping empty ones.
func hostList(n int, text func(i int) string) string {
	var parts []string
	for i := range n {
		if s := text(i); s != "" {
			parts = append(parts, s)
		}
	}
	if extra := len(parts) - listed; extra > 0 {
		parts = append(parts[:listed], fmt.Sprintf("and %d more", extra))
	}
	return strings.Join(parts, ", ")
}

// about returns a note on hosts, "" if it names none.
func about(lead, hosts, rest string) string {
	if hosts == "" {
		return ""
	}
	return lead + hosts + rest
}

// slotList returns the number of free slots of each candidate.
func (m *mapper) slotList(cands []candidate) string {
	return hostList(len(cands), func(i int) string {
		return fmt.Sprintf("%s %d", m.hosts[cands[i].host].Name, cands[i].free)
	})
}

// limitText returns the limit of the candidates' ranks.
func (m *mapper) limitText(cands []candidate) string {
	if what := m.policy.perText(); what != "" {
		allTakeIt := true
		for _, c := range cands {
			allTakeIt = allTakeIt && c.most == m.policy.perHost(&m.hosts[c.host])
		}
		if allTakeIt {
			return fmt.Sprintf("%s on %d hosts", what, len(cands))
		}
	}
	return "max_slots leaves room on " + hostList(len(cands), func(i int) string {
		return fmt.Sprintf("%s for %d", m.hosts[cands[i].host].Name, cands[i].most)
	})
}

// perText returns the policy's number of ranks for each host.
func (p *Policy) perText() string {
	switch {
	case p.PerDomain > 0:
		return fmt.Sprintf("%d per %s", p.PerDomain, p.Order)
	case p.PerNode > 0:
		return fmt.Sprintf("%d per node", p.PerNode)
	}
	return ""
}

// oversubscribed names the hosts with more ranks than processors, unless the user has asked for
// them by slots, which may count something else, as Slurm's tasks, or by -oversubscribe.
func (m *mapper) oversubscribed() string {
	over := hostList(len(m.hosts), func(i int) string {
		h := &m.hosts[i]
		n, what := h.processors(), "processor"
		if n == 0 {
			n, what = h.Slots, "slot" // the only known number
		}
		if m.policy.Oversubscribe || m.load[i] <= max(n, h.Slots) {
			return ""
		}
		return fmt.Sprintf("%s has %s on %s", h.Name, count(m.load[i], "rank"), count(n, what))
	})
	return about("", over, " (-nooversubscribe refuses this, -oversubscribe says nothing of it)")
}

// processors returns the number of ranks that can compute at once on a host, 0 if unknown.
func (h *Host) processors() int {
	n := len(allThreads(h.Cores))
	if h.Quota > 0 {
		n = min(n, h.Quota)
	}
	return n
}

// idle names the hosts that programs may use and do not, with a flag that would change that.
func (m *mapper) idle() string {
	n := m.countIdle()
	if n == 0 {
		return ""
	}
	them := "them"
	if n == 1 {
		them = "it"
	}
	names := hostList(len(m.hosts), func(i int) string {
		if !m.isIdle(i) {
			return ""
		}
		return m.hosts[i].Name
	})
	return fmt.Sprintf("no rank on %s: %s would use %s", names, m.adviceForIdle(), them)
}

// adviceForIdle tries changes of the user's options and returns the smallest change that leaves
// no host idle.
func (m *mapper) adviceForIdle() string {
	byNode := m.policy
	byNode.Order = ByNode
	if t, err := place(m.hosts, m.programs, byNode); err == nil && t.countIdle() == 0 {
		return "-map-by node"
	}
	if len(m.programs) > 1 {
		return "more ranks"
	}
	every := m.programs[0]
	every.NP = m.allowedHosts()
	if t, err := place(m.hosts, []Program{every}, byNode); err != nil || t.countIdle() > 0 {
		return "more ranks"
	}
	every.NP = 0
	if t, err := place(m.hosts, []Program{every}, m.policy); err == nil && t.countIdle() == 0 {
		return fmt.Sprintf("-np %d", len(t.ranks))
	}
	return fmt.Sprintf("-np %d -map-by node", m.allowedHosts())
}

func (m *mapper) isIdle(i int) bool { return m.allowed[i] && m.load[i] == 0 }

func (m *mapper) countIdle() int {
	n := 0
	for i := range m.hosts {
		if m.isIdle(i) {
			n++
		}
	}
	return n
}

func (m *mapper) allowedHosts() int {
	n := 0
	for _, ok := range m.allowed {
		if ok {
			n++
		}
	}
	return n
}
