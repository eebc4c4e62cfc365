package topo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Write writes the matrix of the devices as "nvidia-smi topo -m" has it, and
// below it what they may do with each other's memory, as far as that is known.
// It returns an error only of w.
func (h *Host) Write(w io.Writer) error {
	var b strings.Builder
	matrix(&b, h, []string{"CPU Affinity", "NUMA Affinity"}, Link.way, func(d Device) []string {
		numa := "N/A"
		if d.NUMA >= 0 {
			numa = fmt.Sprint(d.NUMA)
		}
		return []string{orNA(d.CPUs), numa}
	})
	b.WriteString(legend)
	if h.knowsP2P() {
		b.WriteString("\n")
		matrix(&b, h, nil, Link.access, func(Device) []string { return nil })
		b.WriteString(p2pLegend)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const legend = `
X     itself
NV#   # NVLinks, directly or through NVSwitch
PSB   one board
PIX   one PCI switch
PXB   several PCI switches
PHB   the PCI host bridge of a processor
NODE  several host bridges of one NUMA node
SYS   the connection between NUMA nodes
`

const p2pLegend = `
r, w, a  the GPU of the line may read, write, and do atomics in, the memory of
         that of the column; else what forbids it: CNS the chipset, GNS the GPU,
         TNS the topology, DR a setting of the driver, NS something else
`

// matrix writes one line for each device: what way says of its links, and what
// more says of it.
func matrix(w io.Writer, h *Host, head []string, way func(Link) string, more func(Device) []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := []string{""}
	for _, d := range h.Devices {
		line = append(line, gpuName(d))
	}
	fmt.Fprintln(t, strings.Join(append(line, head...), "\t"))
	for i, d := range h.Devices {
		line := []string{gpuName(d)}
		for j := range h.Devices {
			switch {
			case i == j:
				line = append(line, "X")
			case h.Links == nil:
				line = append(line, "?")
			default:
				line = append(line, way(h.Links[i][j]))
			}
		}
		fmt.Fprintln(t, strings.Join(append(line, more(d)...), "\t"))
	}
	t.Flush() // into memory: cannot fail
}

func gpuName(d Device) string { return fmt.Sprintf("GPU%d", d.Index) }

// way abbreviates a link: its NVLinks, or else where on PCI the devices meet.
func (l Link) way() string {
	switch {
	case l.NVLinks > 0:
		return fmt.Sprintf("NV%d", l.NVLinks)
	case l.Level == "":
		return "?"
	}
	return string(l.Level)
}

// Ways returns how device i reaches the others, each way once, as the matrix
// abbreviates them; none where nothing is known.
func (h *Host) Ways(i int) []string {
	if h.Links == nil {
		return nil
	}
	var ways []string
	for j, l := range h.Links[i] {
		if i != j && !slices.Contains(ways, l.way()) {
			ways = append(ways, l.way())
		}
	}
	return ways
}

func (l Link) access() string {
	if l.P2P == "" {
		return "?"
	}
	return l.P2P
}

func (h *Host) knowsP2P() bool {
	for i, links := range h.Links {
		for j, l := range links {
			if i != j && l.P2P != "" {
				return true
			}
		}
	}
	return false
}

func orNA(s string) string {
	if s == "" {
		return "N/A"
	}
	return s
}
