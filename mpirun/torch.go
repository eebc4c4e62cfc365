package mpirun

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/hostfile"
	"gompi/internal/cli"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/plan"
)

// torchrun is what torchrun's users ask for in their own words.
type torchrun struct {
	standalone bool
	perHost    perHost
	nodes      nodeRange
	lastCall   time.Duration
	nodeRank   int    // which node this is; -1 if not given
	endpoint   string // where nodes that are started one by one meet
	tokenFile  string // by which they know each other
	runID      string
	masterAddr string
	masterPort int
}

// torchFlags declares torchrun's flags. The function it returns applies their
// values.
func (o *options) torchFlags(set *cli.Set) func() error {
	t := &o.torchrun
	set.BoolVar(&t.standalone, "standalone", false, "")
	set.Var(&t.perHost, "nproc-per-node", "")
	set.Var(&t.nodes, "nnodes", "")
	t.lastCall = 30 * time.Second
	set.Var((*cli.Duration)(&t.lastCall), "last-call", "")
	t.nodeRank = -1
	set.Var((*nodeNumber)(&t.nodeRank), "node-rank", "")
	set.StringVar(&t.endpoint, "rdzv-endpoint", "", "")
	set.StringVar(&t.tokenFile, "rdzv-token-file", "", "")
	set.StringVar(&t.runID, "rdzv-id", "", "")
	set.StringVar(&t.masterAddr, "master-addr", "", "")
	set.Var((*port)(&t.masterPort), "master-port", "")
	return func() error {
		if t.perHost.n > 0 {
			o.policy.PerNode = t.perHost.n
		}
		if t.standalone && (o.hostfile != "" || t.nodes.most > 1) {
			return errors.New("-standalone is this machine alone: want no -hostfile with it, and no -nnodes above 1")
		}
		host, number, err := net.SplitHostPort(t.meetingPlace())
		var p port
		switch {
		case t.endpoint == "":
		case err != nil, host == "", strings.Contains(host, ":") && net.ParseIP(host) == nil, p.Set(number) != nil && number != "0":
			return fmt.Errorf("-rdzv-endpoint %q: want host:port", t.endpoint)
		}
		return nil
	}
}

// A nodeNumber is the number of a node.
type nodeNumber int

// Set implements pflag.Value.
func (n *nodeNumber) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v >= plan.MaxRanks {
		return errors.New("want the number of a node, from 0")
	}
	*n = nodeNumber(v)
	return nil
}

// String implements pflag.Value.
func (n *nodeNumber) String() string { return strconv.Itoa(int(*n)) }

// Type names the value in usage texts.
func (n *nodeNumber) Type() string { return "R" }

// likeTorchrun applies what holds for torchrun's users where they say nothing:
// one rank on a host.
func (o *options) likeTorchrun() error {
	t := &o.torchrun
	if err := o.checkNodes(); err != nil {
		return err
	}
	for _, p := range o.programs {
		if t.standalone && p.hosts != "" {
			return errors.New("-standalone is this machine alone: want no -H with it")
		}
		if p.np > 0 || t.perHost.given() || o.policy.PerNode > 0 {
			return nil
		}
	}
	if t.standalone || t.nodes.most > 0 {
		o.policy.PerNode = 1
	}
	return nil
}

// pick returns the first hosts that programs may use, as many as -nnodes allows,
// and the programs with what they may use of those.
func (r nodeRange) pick(hosts []hostfile.Host, programs []plan.Program) ([]hostfile.Host, []plan.Program, error) {
	usable := make([]bool, len(hosts))
	for _, p := range programs {
		for i := range hosts {
			named := func(s hostfile.Share) bool { return s.Host == i }
			usable[i] = usable[i] || len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, named)
		}
	}
	picked := 0
	hosts, programs, err := restrict(hosts, programs, func(host int) bool {
		if !usable[host] || picked == r.most {
			return false
		}
		picked++
		return true
	})
	if err == nil && picked < r.least {
		err = fmt.Errorf("hosts known: %d: want more in -hostfile or -H", picked)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("-nnodes %v: %w", r, err)
	}
	return hosts, programs, nil
}

// restrict returns the hosts that are to be kept, and the programs with what
// they may use of those. keep is asked about each host in turn.
func restrict(hosts []hostfile.Host, programs []plan.Program, keep func(host int) bool) ([]hostfile.Host, []plan.Program, error) {
	var kept []hostfile.Host
	at := map[int]int{}
	for i, h := range hosts {
		if keep(i) {
			at[i] = len(kept)
			kept = append(kept, h)
		}
	}
	programs = slices.Clone(programs)
	for i := range programs {
		p := &programs[i]
		var shares []hostfile.Share
		for _, s := range p.Hosts {
			if host, ok := at[s.Host]; ok {
				s.Host = host
				shares = append(shares, s)
			}
		}
		if len(shares) == 0 && len(p.Hosts) > 0 {
			return nil, nil, fmt.Errorf("no host is left for %q", p.Argv[0])
		}
		p.Hosts = shares
	}
	return kept, programs, nil
}

// master has the ranks meet where the flags say, if they do.
func (t *torchrun) master(l *ctl.Launch) {
	if t.masterAddr != "" {
		l.MasterAddr = t.masterAddr
	}
	if t.masterPort != 0 {
		l.MasterPort = t.masterPort
	}
}

// underPython returns the command that runs a program: a script whose name ends
// in .py, and a module, under the python3 of PATH, as torchrun does. Whether
// the script could be run by itself makes no difference.
func underPython(argv []string, module, noPython bool) ([]string, error) {
	switch {
	case module && noPython:
		return nil, errors.New("-m and -no-python: want one of them")
	case module:
		return append([]string{"python3", "-u", "-m"}, argv...), nil
	case strings.HasSuffix(argv[0], ".py") && !noPython:
		return append([]string{"python3", "-u"}, argv...), nil
	}
	return argv, nil
}

// A perHost says how many ranks each host gets: a number, or what it has of
// something.
type perHost struct {
	n  int
	of string // gpu, cpu or auto, which is gpu where there is one
}

var countable = []string{"auto", "cpu", "gpu"}

// countsGPUs reports whether the number depends on GPUs.
func (p *perHost) countsGPUs() bool { return p.of == "gpu" || p.of == "auto" }

func (p *perHost) given() bool { return p.n > 0 || p.of != "" }

// Set implements pflag.Value.
func (p *perHost) Set(s string) error {
	if slices.Contains(countable, s) {
		*p = perHost{of: s}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > plan.MaxRanks {
		return errors.New("want a whole number, 1 or more, or gpu, cpu or auto")
	}
	*p = perHost{n: n}
	return nil
}

// String implements pflag.Value.
func (p *perHost) String() string {
	if p.of != "" {
		return p.of
	}
	return strconv.Itoa(p.n)
}

// Type names the value in usage texts.
func (p *perHost) Type() string { return "N" }

// size makes the slots of each host what -nproc-per-node counts there.
func (j *job) size(hosts []plan.Host) error {
	for i := range hosts {
		p, err := j.meeting.count(hosts[i].Name, j.perHost)
		if err == nil {
			err = p.size(&hosts[i], j.policy.GPUs, j.meeting != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// size makes the slots of one host what is to be counted there, GPUs by the
// number that each rank gets, and also a plain number if its nodes may differ in
// that.
func (p *perHost) size(host *plan.Host, each int, differ bool) error {
	if p.of == "" {
		if p.n > 0 && differ {
			host.Slots = p.n
		}
		return nil
	}
	gpus, cpus := len(host.GPUs), 0
	for _, core := range host.Cores {
		cpus += len(core)
	}
	switch {
	case p.of == "gpu" && gpus == 0:
		return fmt.Errorf("-nproc-per-node gpu: %s has no NVIDIA GPU that programs may use: want a number, cpu or auto", host.Name)
	case p.of == "cpu" || gpus == 0:
		host.Slots = max(1, cpus)
	default:
		host.Slots = max(1, gpus/max(1, each))
	}
	return nil
}

// A nodeRange is how many nodes a job has: N, or MIN:MAX.
type nodeRange struct{ least, most int }

// Set implements pflag.Value.
func (r *nodeRange) Set(s string) error {
	first, last, found := strings.Cut(s, ":")
	if !found {
		last = first
	}
	least, err1 := strconv.Atoi(first)
	most, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || least < 1 || most < least || most > plan.MaxRanks {
		return errors.New("want a number of nodes, 1 or more, or MIN:MAX")
	}
	*r = nodeRange{least, most}
	return nil
}

// String implements pflag.Value.
func (r nodeRange) String() string {
	if r.least == r.most {
		return strconv.Itoa(r.most)
	}
	return fmt.Sprintf("%d:%d", r.least, r.most)
}

// Type names the value in usage texts.
func (r *nodeRange) Type() string { return "N" }

// A port is a TCP port. 0 stands for a flag not given.
type port int

// Set implements pflag.Value.
func (p *port) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return errors.New("want a port, 1 to 65535")
	}
	*p = port(n)
	return nil
}

// String implements pflag.Value.
func (p *port) String() string { return strconv.Itoa(int(*p)) }

// Type names the value in usage texts.
func (p *port) Type() string { return "port" }
