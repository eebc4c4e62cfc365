package cmdline

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/internal/cli"
	"gompi/mpirun/internal/plan"
)

// Flags of torchrun's users.

// torchFlags declares torchrun's flags.
func (s *Spec) torchFlags(set *cli.Set) {
	r := &s.Rendezvous
	r.LastCall, r.NodeRank = 30*time.Second, -1
	set.Group = "as torchrun"
	set.Flag("nnodes", "N", &s.Nodes, "how many hosts of the list to use; MIN:MAX if fewer will do")
	set.Flag("standalone", "", &s.Standalone, "this machine alone, whatever a scheduler has granted")
	set.Flag("virtual-local-rank", "", &s.VirtualLocalRank, "-gpus-per-rank 1, and LOCAL_RANK is 0 on all ranks")
	set.Flag("rdzv-id", "NAME", &s.RunID, "what TORCHELASTIC_RUN_ID says to the ranks")
	node := cli.Number(&r.NodeRank, 0, plan.MaxRanks-1, "the number of a node, from 0", "R")
	set.Flag("node-rank", "R", node, "which node this is, where one gompirun is started on each (default: node 0 is "+
		"where all meet, the others as they come)")
	set.Flag("rdzv-endpoint", "HOST:PORT", &r.Endpoint, "where they meet: at node 0 (default port "+defaultPort+
		"; also -master-addr HOST -master-port PORT)")
	set.Flag("last-call", "T", (*cli.Duration)(&r.LastCall), "how long a job that has MIN nodes waits for more "+
		"(default {}); later nodes are refused; nodes know each other by a token, GOMPI_TOKEN, the same on all")
	set.Flag("master-addr", "HOST", &s.Master.Addr, "what MASTER_ADDR says to the ranks (default: the address of rank "+
		"0's host)")
	port := cli.Number(&s.Master.Port, 1, math.MaxUint16, "a port, 1 to 65535", "port")
	set.Flag("master-port", "PORT", port, "what MASTER_PORT says to the ranks (default: a port of that host that is "+
		"held until rank 0 listens on it)")
}

// try returns the error of a flag by itself.
func (p *parser) try(flag string) error {
	trial := &parser{spec: &Spec{}, getenv: p.getenv, note: func(string) {}}
	set, finish := trial.flags(true)
	rest, err := set.Parse([]string{flag, "program"})
	if err == nil {
		_, err = finish(rest)
	}
	return err
}

// finishTorch applies the values of torchrun's flags.
func (s *Spec) finishTorch() error {
	if s.PerHost.N > 0 {
		s.Policy.PerNode = s.PerHost.N
	}
	if s.VirtualLocalRank {
		s.Policy.GPUs = max(s.Policy.GPUs, 1)
	}
	if s.Standalone && (s.Hostfile != "" || s.Nodes.Most > 1) {
		return errors.New("-standalone is this machine alone: want no -hostfile with it, and no -nnodes above 1")
	}
	host, port, err := net.SplitHostPort(s.RendezvousEndpoint())
	_, badPort := strconv.ParseUint(port, 10, 16)
	switch {
	case s.Rendezvous.Endpoint == "":
	case err != nil, host == "", strings.Contains(host, ":") && net.ParseIP(host) == nil, badPort != nil:
		return fmt.Errorf("-rdzv-endpoint %q: want host:port", s.Rendezvous.Endpoint)
	}
	return nil
}

// likeTorchrun applies torchrun's default if the user sets no number: one rank on a host.
func (s *Spec) likeTorchrun() error {
	for _, p := range s.Programs {
		if s.Standalone && p.Hosts != "" {
			return errors.New("-standalone is this machine alone: want no -H with it")
		}
		if p.NP > 0 || s.PerHost.Given() || s.Policy.PerNode > 0 { // of -ppn, or of -map-by ppr:N:node
			return nil
		}
	}
	if s.Standalone || s.Nodes.Most > 0 {
		s.Policy.PerNode = 1
	}
	return nil
}

// OneByOne reports whether the user starts a gompirun on each node.
func (s *Spec) OneByOne() bool {
	r := &s.Rendezvous
	return s.Nodes.Most > 1 && s.Hostfile == "" && !s.namesHosts() &&
		(r.Endpoint != "" || s.Master.Addr != "" || r.NodeRank >= 0)
}

func (s *Spec) namesHosts() bool {
	return slices.ContainsFunc(s.Programs, func(p Program) bool { return p.Hosts != "" })
}

// checkNodes rejects contradictory options about nodes.
func (s *Spec) checkNodes() error {
	rank := s.Rendezvous.NodeRank
	switch {
	case rank >= max(1, s.Nodes.Most):
		return fmt.Errorf("-node-rank %d: want one below -nnodes", rank)
	case rank >= 0 && s.Nodes.Most > 1 && (s.Hostfile != "" || s.namesHosts()):
		return errors.New("-node-rank is for a gompirun started on each node: want it, or -hostfile or -H, from which one gompirun starts all")
	case s.OneByOne() && s.RendezvousEndpoint() == "":
		return errors.New("-node-rank needs -rdzv-endpoint HOST:PORT, which says where node 0 is")
	case s.OneByOne() && len(s.Programs) > 1:
		return errors.New(`":" and -node-rank: want one program`)
	}
	return nil
}

// defaultPort is the port of the rendezvous if the user gives none.
const defaultPort = "29400"

// RendezvousEndpoint returns the rendezvous of the nodes as host:port, "" if unknown.
func (s *Spec) RendezvousEndpoint() string {
	place, port := s.Rendezvous.Endpoint, defaultPort
	if place == "" {
		place = s.Master.Addr
		if s.Master.Port != 0 {
			port = strconv.Itoa(s.Master.Port)
		}
	}
	if _, _, err := net.SplitHostPort(place); err == nil || place == "" {
		return place
	}
	return net.JoinHostPort(place, port)
}

// A PerHost is the number of ranks on each host: a constant, or the host's count of some
// resource.
type PerHost struct {
	N  int
	Of string // gpu, cpu or auto: gpu if the host has any, else cpu
}

var countable = []string{"auto", "cpu", "gpu"}

// CountsGPUs reports whether the number depends on GPUs.
func (p PerHost) CountsGPUs() bool { return p.Of == "gpu" || p.Of == "auto" }

// Given reports whether p is set.
func (p PerHost) Given() bool { return p != PerHost{} }

// Set implements pflag.Value.
func (p *PerHost) Set(s string) error {
	if slices.Contains(countable, s) {
		*p = PerHost{Of: s}
		return nil
	}
	if s == "xpu" {
		return errors.New("gompirun counts GPUs of NVIDIA alone: want their number, or cpu")
	}
	if err := cli.TooLarge(s, plan.MaxRanks); err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return errors.New("want a whole number, 1 or more, or gpu, cpu or auto")
	}
	*p = PerHost{N: n}
	return nil
}

// String implements pflag.Value.
func (p PerHost) String() string {
	if p.Of != "" {
		return p.Of
	}
	return strconv.Itoa(p.N)
}

// Type names the value in usage texts.
func (p PerHost) Type() string { return "N" }

// A NodeRange is the number of nodes of a job: N, or MIN:MAX.
type NodeRange struct{ Least, Most int }

// Set implements pflag.Value.
func (r *NodeRange) Set(s string) error {
	first, last, found := strings.Cut(s, ":")
	if !found {
		last = first
	}
	if err := cli.TooLarge(last, plan.MaxRanks); err != nil {
		return err
	}
	least, err1 := strconv.Atoi(first)
	most, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || least < 1 || most < least {
		return errors.New("want a number of nodes, 1 or more, or MIN:MAX")
	}
	*r = NodeRange{least, most}
	return nil
}

// String implements pflag.Value.
func (r NodeRange) String() string {
	if r.Least == r.Most {
		return strconv.Itoa(r.Most)
	}
	return fmt.Sprintf("%d:%d", r.Least, r.Most)
}

// Type names the value in usage texts.
func (r NodeRange) Type() string { return "N" }
