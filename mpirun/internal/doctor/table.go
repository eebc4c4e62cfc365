package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gompi/cudaops/topo"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/table"
)

// A page is text with tables of a width.
type page struct {
	strings.Builder
	width int
}

// writeFindings prints the findings and the advice.
func writeFindings(w io.Writer, width int, ps []*host, advice []advice) {
	b := page{width: width}
	b.writeHosts(ps)
	b.writeGPUs(ps)
	b.writeInterfaces(ps)
	b.writeRDMA(ps)
	b.writeProcessors(ps)
	b.writePythons(ps)
	b.writePairs(ps)
	b.WriteString("\n")
	if len(advice) == 0 {
		b.WriteString("nothing to mend\n")
	}
	for _, a := range advice {
		mark := "hint"
		if a.bad {
			mark = "MEND"
		}
		fmt.Fprintf(&b, "%s  %s: %s\n      %s\n", mark, a.who, a.what, a.remedy)
	}
	io.WriteString(w, b.String()) // a failure cannot be reported
}

// columns writes lines of cells as columns. The first line, the headers, has all columns.
func (b *page) columns(lines [][]string) {
	b.WriteString(strings.Join(table.Lay(lines, b.width), ""))
}

// section writes lines of cells below an empty line, unless there are headers alone.
func (b *page) section(lines [][]string) {
	if len(lines) > 1 {
		b.WriteString("\n")
		b.columns(lines)
	}
}

var hostHeaders = []string{"host", "log-in", "gompirun", "cores", "memory", "free", "/dev/shm", "clock"}

const hostLegend = `log-in: how long it took; lockable: memory that a rank may lock, as RDMA and
GPUs want; open files: of a process; clock: ahead of this host's (+) or behind
(-); UCX: the library for RDMA; MPI: whose programs run on gompi's MPI library
`

func (b *page) writeHosts(ps []*host) {
	lines, more := [][]string{hostHeaders}, [][]string{{"host", "lockable", "open files", "GPUs", "UCX", "MPI"}}
	for _, p := range ps {
		if p.findings == nil {
			lines = append(lines, append([]string{p.entry.Name, "failed"},
				slices.Repeat([]string{"-"}, len(hostHeaders)-2)...))
			continue
		}
		f := p.findings
		lines = append(lines, []string{p.entry.Name, ms(p.login), p.hello.Version, coresText(p), memoryText(f),
			size(f.MemoryFree), size(f.Shm), clockText(p)})
		more = append(more, []string{p.entry.Name, size(f.Memlock), count(f.Files), gpuText(p.gpus), yesNo(f.UCX != ""),
			cmp.Or(f.MPI, "-")})
	}
	b.columns(lines)
	b.section(more)
	b.WriteString(hostLegend)
}

// writeGPUs prints a line for each GPU and each MIG slice.
func (b *page) writeGPUs(ps []*host) {
	lines := [][]string{{"host", "GPU", "name", "memory", "PCI address", "NUMA node", "nearest CPUs", "compute mode",
		"links to the others"}}
	for _, p := range ps {
		if p.gpus == nil {
			continue
		}
		for i, d := range p.gpus.Devices {
			numa := "-"
			if d.NUMA >= 0 {
				numa = fmt.Sprint(d.NUMA)
			}
			lines = append(lines, []string{
				p.entry.Name, fmt.Sprint(d.Index), d.Name, orDash(d.Memory), d.PCI, numa, cmp.Or(d.CPUs, "-"),
				cmp.Or(string(d.Mode), "-"),
				cmp.Or(strings.Join(p.gpus.Ways(i), " "), "-"),
			})
			for k, s := range d.Slices {
				lines = append(lines, []string{p.entry.Name, fmt.Sprintf("%d:%d", d.Index, k), cmp.Or(s.Name, s.UUID),
					orDash(s.Memory)})
			}
		}
	}
	b.section(lines)
}

func orDash(bytes uint64) string {
	if bytes == 0 || bytes > 1<<60 {
		return "-"
	}
	return size(int64(bytes))
}

func (b *page) writeInterfaces(ps []*host) {
	lines := [][]string{{"host", "interface", "speed", "MTU", "addresses"}}
	for _, p := range examined(ps) {
		for _, i := range p.findings.Interfaces {
			lines = append(lines, []string{p.entry.Name, i.Name, speed(i.Megabits), fmt.Sprint(i.MTU),
				strings.Join(i.Addresses, " ")})
		}
	}
	b.section(lines)
}

func (b *page) writeRDMA(ps []*host) {
	lines := [][]string{{"host", "RDMA port", "state", "link", "rate", "NUMA node", "GID"}}
	for _, p := range examined(ps) {
		for _, r := range p.findings.RDMA {
			domain := "-"
			if r.Domain >= 0 {
				domain = fmt.Sprint(r.Domain)
			}
			lines = append(lines, []string{p.entry.Name, r.Name, r.State, r.Link, r.Rate, domain, r.GID})
		}
	}
	b.section(lines)
}

func (b *page) writeProcessors(ps []*host) {
	lines := [][]string{{"host", "processor", "tuning"}}
	for _, p := range examined(ps) {
		f := p.findings
		lines = append(lines, []string{p.entry.Name, f.Processor, cmp.Or(f.Tuning, "-")})
	}
	b.section(lines)
}

// writePythons prints the python3 that ranks run on each host.
func (b *page) writePythons(ps []*host) {
	lines := [][]string{{"host", "Python", "torch", "gompi_torch", "path"}}
	for _, p := range examined(ps) {
		f := p.findings.Python
		lines = append(lines, []string{p.entry.Name, cmp.Or(f.Version, "-"), cmp.Or(f.Torch, "-"),
			cmp.Or(f.GompiTorch, "-"), cmp.Or(f.Path, "-")})
	}
	b.section(lines)
}

// wide is the most hosts that fit into a table of pairs.
const wide = 10

// writePairs prints the connections between hosts: a table of pairs, or, for many hosts, only the
// slowest connection of each.
func (b *page) writePairs(ps []*host) {
	if len(ps) < 2 {
		return
	}
	to := "each other"
	if len(ps)-1 > maxRounds {
		to = fmt.Sprintf("the %d after it in the list, no others", maxRounds)
	}
	fmt.Fprintf(b, "\nfrom each host (lines) to %s: GB/s, round trip, interface\n", to)
	var lines [][]string
	if len(ps) <= wide {
		head := []string{"from \\ to"}
		for _, p := range ps {
			head = append(head, p.entry.Name)
		}
		lines = append(lines, head)
		for _, p := range ps {
			line := []string{p.entry.Name}
			for k := range ps {
				line = append(line, pairText(ps, p, k))
			}
			lines = append(lines, line)
		}
		b.columns(lines)
		return
	}
	lines = append(lines, []string{"from", "reached", "slowest to", ""})
	for _, p := range ps {
		reached, tried, worst := 0, 0, -1
		for k, r := range p.reached {
			if r == nil {
				continue
			}
			tried++
			if r.Trouble != "" {
				continue
			}
			reached++
			if worst < 0 || rate(r) < rate(p.reached[worst]) {
				worst = k
			}
		}
		line := []string{p.entry.Name, fmt.Sprintf("%d of %d", reached, tried)}
		if worst >= 0 {
			line = append(line, ps[worst].entry.Name, pairText(ps, p, worst))
		}
		lines = append(lines, line)
	}
	b.columns(lines)
}

func pairText(ps []*host, p *host, k int) string {
	r := p.reached[k]
	switch {
	case ps[k] == p:
		return "-"
	case r == nil:
		return "not tried"
	case r.Trouble != "":
		return "NO"
	}
	return fmt.Sprintf("%.2f %s %s", rate(r), r.RoundTrip.Round(time.Microsecond), r.Interface)
}

// rate returns a connection's rate, in 1e9 bytes per second.
func rate(r *ctl.Reached) float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Bytes) / r.Took.Seconds() / 1e9
}

func coresText(p *host) string {
	threads := len(slices.Concat(p.hello.Cores...))
	text := fmt.Sprint(len(p.hello.Cores))
	if threads > len(p.hello.Cores) {
		text += fmt.Sprintf(" (%d threads)", threads)
	}
	if m := p.findings.MilliCPUs; m != ctl.Unlimited {
		text += fmt.Sprintf(", granted %.4g", float64(m)/1000)
	}
	return text
}

func memoryText(f *ctl.Findings) string {
	if f.MemoryLimit == ctl.Unlimited {
		return size(f.Memory)
	}
	return size(f.MemoryLimit) + " of " + size(f.Memory)
}

func clockText(p *host) string {
	if p.skew.Abs() <= p.blur+time.Millisecond {
		return "same"
	}
	return fmt.Sprintf("%+.3fs", p.skew.Seconds())
}

func gpuText(g *topo.Host) string {
	switch {
	case g == nil || g.Driver == "" && len(g.Devices) == 0:
		return "-"
	case g.Driver == "":
		return fmt.Sprint(len(g.Devices))
	}
	return fmt.Sprintf("%d, driver %s", len(g.Devices), g.Driver)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "-"
}

// size writes bytes with a unit.
func size(n int64) string {
	switch {
	case n == ctl.Unlimited:
		return "unlimited"
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func count(n int64) string {
	if n == ctl.Unlimited {
		return "unlimited"
	}
	return fmt.Sprint(n)
}

func speed(megabits int) string {
	switch {
	case megabits == 0:
		return "unknown"
	case megabits%1000 == 0:
		return fmt.Sprintf("%d Gbit/s", megabits/1000)
	}
	return fmt.Sprintf("%d Mbit/s", megabits)
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// sameHost reports whether two names mean the same host. The same machine is no proof: its
// containers have networks of their own.
func sameHost(a, b *host) bool {
	return a.hello.Machine == b.hello.Machine && slices.Equal(a.findings.Addresses, b.findings.Addresses)
}
