package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Display returns the table of -display-map: every host in turn, with its ranks and their
// bindings.
func (p *Plan) Display() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, by %s", count(len(p.Ranks), "rank"), count(p.used(), "host"), p.Policy.orderText())
	if what := p.Policy.perText(); what != "" {
		fmt.Fprintf(&b, ", %s", what)
	}
	if n := p.Policy.PE; n > 0 {
		fmt.Fprintf(&b, ", PE=%d", n)
	}
	if p.Policy.spans() {
		b.WriteString(", span")
	}
	if n := p.Policy.GPUs; n > 0 {
		fmt.Fprintf(&b, ", gpus-per-rank %d", n)
	}
	if how := p.Policy.RankBy; how != RankAuto {
		fmt.Fprintf(&b, ", rank-by %s", how)
	}
	if list := p.Policy.CPUList; list != "" {
		fmt.Fprintf(&b, ", cpu-list %s", list)
	}
	fmt.Fprintf(&b, ", bind-to %s\n", p.Policy.BindTo)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for node := range p.Hosts {
		p.displayHost(t, node)
	}
	t.Flush() // into memory: cannot fail
	return b.String()
}

func (p *Plan) displayHost(w io.Writer, node int) {
	h := &p.Hosts[node]
	fmt.Fprintf(w, "%s: %s on %s", h.Name, count(len(p.Local[node]), "rank"), count(h.Slots, "slot"))
	if h.MaxSlots > 0 {
		fmt.Fprintf(w, " (max %d)", h.MaxSlots)
	}
	if len(h.Cores) > 0 {
		fmt.Fprintf(w, ", %s", count(len(h.Cores), "core"))
	}
	if h.Quota > 0 && h.Quota < len(h.Cores) {
		fmt.Fprintf(w, " with the time of %d", h.Quota)
	}
	if n := len(h.GPUs); n > 0 {
		fmt.Fprintf(w, ", %s", count(n, "GPU"))
	}
	if h.Via != "" {
		fmt.Fprintf(w, ", %s", h.Via)
	}
	fmt.Fprintln(w)
	for _, rank := range p.Local[node] {
		r := &p.Ranks[rank]
		fmt.Fprintf(w, "  rank %d\tlocal %d\t%s%s\t%s\n", rank, r.LocalRank, r.binding(), p.GPUText(rank),
			p.Programs[r.Prog].Name)
	}
}

func (p *Policy) orderText() string {
	if p.Rankfile != nil {
		return p.Rankfile.name
	}
	return p.Order.String()
}

// used returns the number of hosts with a rank.
func (p *Plan) used() int {
	n := 0
	for _, ranks := range p.Local {
		if len(ranks) > 0 {
			n++
		}
	}
	return n
}

func (r *Placement) binding() string {
	if r.CPUs == nil {
		return "not bound"
	}
	return "cpus " + Ranges(r.CPUs)
}

// Ranges writes ascending numbers, runs as ranges: 0-3,8.
func Ranges(sorted []int) string {
	var b strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(sorted[j]))
		}
		i = j + 1
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
