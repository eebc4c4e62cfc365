package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Port is one port of an InfiniBand or RoCE device.
type Port struct {
	Device string
	Number int
	State  string // "ACTIVE", "DOWN", ...
	Link   string // "InfiniBand"; "Ethernet" is RoCE
	Rate   string // "100 Gb/sec (4X EDR)"
	GID    string // the first GID that is not zero, "" if there is none
	Node   int    // memory domain of the device, -1 if unknown
}

// Name is the name of p in UCX_NET_DEVICES: "mlx5_0:1".
func (p *Port) Name() string { return p.Device + ":" + strconv.Itoa(p.Number) }

// Fabric names the network of the port, as far as the kernel knows: ports of different fabrics do
// not reach each other. The kernel does not distinguish RoCE networks; InfiniBand has subnets,
// whose prefix is the first half of a GID.
func (p *Port) Fabric() string {
	if p.Link == "Ethernet" {
		return "RoCE"
	}
	prefix := p.GID
	if len(prefix) == gidLength {
		prefix = prefix[:gidLength/2]
	}
	return strings.TrimSpace(p.Link + " " + prefix)
}

// gidLength is the length of a GID as the kernel prints it.
const gidLength = len("fe80:0000:0000:0000:0000:0000:0000:0001")

// Active reports whether the port can carry messages.
func (p *Port) Active() bool { return p.State == "ACTIVE" }

// Ports returns all ports in order of their names. sys is the mount point of sysfs: "/sys".
func Ports(sys string) []Port {
	dirs, _ := filepath.Glob(filepath.Join(sys, "class/infiniband/*/ports/*")) // the pattern is right
	var all []Port
	for _, dir := range dirs {
		n, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		device := filepath.Dir(filepath.Dir(dir))
		_, state, _ := strings.Cut(read(dir, "state"), ": ") // "4: ACTIVE"
		all = append(all, Port{
			Device: filepath.Base(device), Number: n, State: state, Link: read(dir, "link_layer"),
			Rate: read(dir, "rate"), GID: gid(dir), Node: number(read(device, "device/numa_node"), -1),
		})
	}
	return all
}

// gid returns the first GID of a port that is not zero.
func gid(port string) string {
	for i := range 16 {
		if g := read(port, "gids", strconv.Itoa(i)); strings.Trim(g, "0:") != "" {
			return g
		}
	}
	return ""
}

// localDistance is the distance of a memory domain to itself, as firmware reports it.
const localDistance = 10

// NearestPorts returns, of each fabric, the active ports whose devices are nearest to the memory
// domains of some CPUs. A device of unknown domain counts as near.
func NearestPorts(sys string, ports []Port, cpus []int) []Port {
	least := map[string]int{}
	for _, p := range ports {
		d := distance(sys, p.Node, cpus)
		if best, ok := least[p.Fabric()]; p.Active() && (!ok || d < best) {
			least[p.Fabric()] = d
		}
	}
	var nearest []Port
	for _, p := range ports {
		if p.Active() && distance(sys, p.Node, cpus) == least[p.Fabric()] {
			nearest = append(nearest, p)
		}
	}
	return nearest
}

// distance returns the least distance of a memory domain to the domains of some CPUs.
func distance(sys string, node int, cpus []int) int {
	nodes := filepath.Join(sys, "devices/system/node")
	distances := strings.Fields(read(nodes, "node"+strconv.Itoa(node), "distance")) // by online domain
	least := -1
	for i, other := range list(read(nodes, "online")) {
		mine := list(read(nodes, "node"+strconv.Itoa(other), "cpulist"))
		if i >= len(distances) || !slices.ContainsFunc(cpus, func(c int) bool { return slices.Contains(mine, c) }) {
			continue
		}
		if d := number(distances[i], localDistance); least < 0 || d < least {
			least = d
		}
	}
	if least < 0 {
		return localDistance
	}
	return least
}

// list returns the numbers of a list as the kernel prints it: "0-3,8".
func list(s string) []int {
	var all []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first := number(lo, -1)
		last := first
		if isRange {
			last = number(hi, -1)
		}
		for n := first; first >= 0 && n <= last; n++ {
			all = append(all, n)
		}
	}
	return all
}

func number(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return otherwise
}

// read returns a file's first line, "" if there is none.
func read(path ...string) string {
	b, _ := os.ReadFile(filepath.Join(path...))
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
