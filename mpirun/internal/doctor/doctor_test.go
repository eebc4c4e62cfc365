package doctor

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gompi/cudaops/topo"
	"gompi/hostfile"
	"gompi/mpirun/internal/ctl"
)

// healthy returns a host of which nothing is to be said.
func healthy(name string) *host {
	return &host{
		entry: hostfile.Host{Name: name, Slots: 2}, login: 200 * time.Millisecond,
		hello: &ctl.Hello{Version: ctl.Version, Machine: name, Cores: [][]int{{0}, {1}}},
		findings: &ctl.Findings{
			Port: 4000, Addresses: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, name[len(name)-1]}), 24)},
			Interfaces: []ctl.Interface{{Name: "eth0", Addresses: []string{"10.0.0.1/24"}, Megabits: 10000}},
			MilliCPUs:  ctl.Unlimited, Memory: 16 << 30, MemoryFree: 15 << 30, MemoryLimit: ctl.Unlimited, Shm: 8 << 30,
			Memlock: ctl.Unlimited, Files: 1024, FilesHard: ctl.Unlimited,
		},
	}
}

// connected returns n healthy hosts that reach each other.
func connected(n int) []*host {
	ps := make([]*host, n)
	for i := range ps {
		ps[i] = healthy("node" + string(rune('0'+i)))
	}
	for i, p := range ps {
		p.reached = make([]*ctl.Reached, n)
		for k := range ps {
			if k != i {
				p.reached[k] = &ctl.Reached{Peer: k, Interface: "eth0", Address: ps[k].findings.Addresses[0].String(),
					RoundTrip: time.Millisecond, Bytes: 1e9, Took: time.Second}
			}
		}
	}
	return ps
}

func TestTheHealthyAreLeftAlone(t *testing.T) {
	if got := advise(connected(4), [2]int{}); len(got) != 0 {
		t.Errorf("advice: %+v", got)
	}
}

func TestEveryTroubleHasItsRemedy(t *testing.T) {
	unreached := func(why string) func(ps []*host) {
		return func(ps []*host) { ps[0].reached[2].Trouble = why }
	}
	failed := func(why string) func(ps []*host) {
		return func(ps []*host) {
			ps[1] = &host{entry: ps[1].entry, byHand: "rsh -p 7 node1 true", trouble: errors.New(why),
				reached: make([]*ctl.Reached, len(ps))}
		}
	}
	for _, tt := range []struct {
		name        string
		spoil       func(ps []*host)
		bad         bool
		who, remedy string
	}{
		{"no key", failed("root@node1: Permission denied (publickey)"), true, "node1",
			`"rsh -p 7 node1 true" must work without asking`},
		{"key of the host", failed("Host key verification failed."), true, "node1", "rsh -p 7 node1 true"},
		{"another key of the host", failed("Host key verification failed; its key is not the one that is known"), true,
			"node1", "until the key"},
		{"many logins", failed("Connection closed by 1.2.3.4 port 22; want a larger MaxStartups"), true, "node1",
			"log of its sshd"},
		{"no such name", failed("ssh: Could not resolve hostname node1: Name or service not known"), true, "node1",
			"/etc/hosts"},
		{"no sshd", failed("ssh: connect to host node1 port 22: Connection refused"), true, "node1", "sshd"},
		{"silence", failed("no agent after 30s (-start-timeout)"), true, "node1", "security group"},
		{"version", failed(`its gompirun is version "0", want 1 as here`), true, "node1", "install this gompirun"},
		{"no gompirun", failed("ssh exited with status 127: sh: gompirun: not found"), true, "node1", "-launch-agent"},
		{"something else", failed("it broke"), true, "node1", "rsh -p 7 node1 true"},
		{"firewall", unreached("10.0.0.2:4000: no answer"), true, "node0", "-port-range 47000-47999"},
		{"no route", unreached("10.0.0.2:4000: no route to host"), true, "node0", "ip route get"},
		{"no port", func(ps []*host) { ps[1].findings.Port, ps[1].findings.Trouble = 0, "no free port" }, true, "node1",
			"-port-range"},
		{"interfaces", func(ps []*host) { ps[1].findings.Addresses = nil }, true, "node1", "-iface"},
		{"files", func(ps []*host) { ps[1].findings.Files = 64 }, true, "node1", "ulimit -n 70"},
		{"files for good", func(ps []*host) { ps[1].findings.Files, ps[1].findings.FilesHard = 64, 64 }, true, "node1",
			"limits.conf"},
		{"clock", func(ps []*host) { ps[1].skew = -90 * time.Second }, false, "node1", "chrony"},
		{"slow login", func(ps []*host) { ps[1].login = 20 * time.Second }, false, "node1", "UseDNS"},
		{"small shm", func(ps []*host) { ps[1].findings.Shm = 64 << 20 }, false, "node1", "--shm-size"},
		{"locked", func(ps []*host) { ps[1].gpus, ps[1].findings.Memlock = withGPUs(topo.Host{}), 8<<20 }, false,
			"node1", "memlock"},
		{"no address", func(ps []*host) { ps[1].findings.Addresses = nil }, true, "node1",
			"neither loopback nor link-local"},
		{"reading", func(ps []*host) { ps[1].findings.PtraceScope = 2 }, false, "node1", "ptrace_scope=1"},
		{"RDMA", func(ps []*host) { ps[1].findings.RDMA = []ctl.RDMAPort{{Name: "mlx5_0:1"}} }, false,
			"node1", "libucx0"},
		{"quota", func(ps []*host) { ps[1].findings.MilliCPUs = 1500 }, false, "node1", "slots=1"},
		{"memory", func(ps []*host) { ps[1].findings.MemoryFree = 1 << 20 }, false, "node1", "what else"},
		{"slow pair", func(ps []*host) { ps[0].reached[1].Took = time.Minute }, false, "node0", "ethtool"},
		{"slow interface", func(ps []*host) {
			f := ps[0].findings
			f.Interfaces = append(f.Interfaces, ctl.Interface{Name: "ib0", Addresses: []string{"10.1.0.1/24"},
				Megabits: 100000})
			ps[0].reached[2] = nil
		}, false, "node0", "-iface ib0"},
		{"two names", func(ps []*host) {
			ps[2].hello.Machine, ps[2].findings.Addresses = ps[0].hello.Machine, ps[0].findings.Addresses
		}, false, "node2", "one line of the hostfile"},
		{"drivers", func(ps []*host) {
			ps[0].gpus, ps[1].gpus = withGPUs(topo.Host{Driver: "535.1"}), withGPUs(topo.Host{Driver: "570.2"})
		}, false, "GPU drivers", "one version"},
		{"torch", func(ps []*host) { withTorch(ps)[1].Torch = "2.6.0" }, false, "versions of torch", "one version"},
		{"torch on some", func(ps []*host) { *withTorch(ps)[1] = ctl.Python{} }, false, "versions of torch", "PATH"},
		{"Python", func(ps []*host) { withTorch(ps)[1].Version = "3.12.1" }, false, "versions of Python", "PATH"},
		{"gompi_torch", func(ps []*host) { withTorch(ps)[1].GompiTorch = "" }, false, "versions of gompi_torch", "PATH"},
		{"no gompi-topo", func(ps []*host) { ps[1].gpus = withGPUs(topo.Host{Trouble: "gompi-topo is not there"}) },
			false, "node1", "put gompi-topo beside"},
		{"a lost GPU", func(ps []*host) { ps[1].gpus = withGPUs(topo.Host{Warnings: []string{"GPU 3 is left out"}}) },
			false, "node1", "other GPUs"},
	} {
		ps := connected(3)
		tt.spoil(ps)
		got := advise(ps, [2]int{})
		if len(got) != 1 || got[0].bad != tt.bad || got[0].who != tt.who ||
			!strings.Contains(got[0].remedy, tt.remedy) {
			t.Errorf("%s: %+v, want one about %s with %q", tt.name, got, tt.who, tt.remedy)
		}
		var b strings.Builder
		writeFindings(&b, 120, ps, got)
		if !strings.Contains(b.String(), tt.who+": "+got[0].what) {
			t.Errorf("%s: not said in\n%s", tt.name, b.String())
		}
	}
}

// withTorch gives hosts the same Python with torch, which it returns.
func withTorch(ps []*host) []*ctl.Python {
	var all []*ctl.Python
	for _, p := range ps {
		p.findings.Python = ctl.Python{Path: "/v/bin/python3", Version: "3.11.2", Torch: "2.7.1", GompiTorch: "0.1.0"}
		all = append(all, &p.findings.Python)
	}
	return all
}

func TestPythonsAreListedAndComparedWhereThereIsTorch(t *testing.T) {
	ps := connected(3)
	withTorch(ps)
	ps[1].findings.Python = ctl.Python{Path: "/usr/bin/python3", Version: "3.9.2"}
	ps[2].findings.Python = ctl.Python{}
	b := page{width: 120}
	b.writePythons(ps)
	want := `
host   Python  torch  gompi_torch  path
node0  3.11.2  2.7.1  0.1.0        /v/bin/python3
node1  3.9.2   -      -            /usr/bin/python3
node2  -       -      -            -
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	said := advise(ps, [2]int{})
	if want := "they differ: 2.7.1 on node0; none on node1, node2"; len(said) != 1 || said[0].what != want {
		t.Errorf("%+v, want %q", said, want)
	}
	ps[0].findings.Python.Torch = ""
	if said := advise(ps, [2]int{}); len(said) != 0 {
		t.Errorf("%+v without any torch", said)
	}
}

// withGPUs returns h with two GPUs, one cut into slices.
func withGPUs(h topo.Host) *topo.Host {
	h.Devices = []topo.Device{
		{Name: "NVIDIA H200", Memory: 141 << 30, PCI: "0000:1b:00.0", CPUs: "0-47", Mode: topo.Shared},
		{Index: 1, Name: "NVIDIA H200", PCI: "0000:9a:00.0", NUMA: -1, MIG: true,
			Slices: []topo.Slice{{UUID: "MIG-a"}, {UUID: "MIG-b", Name: "1g.18gb", Memory: 18 << 30}}},
	}
	link := topo.Link{Level: topo.System, NVLinks: 18}
	h.Links = [][]topo.Link{{{}, link}, {link, {}}}
	return &h
}

func TestDoctorShowsGPUs(t *testing.T) {
	p := healthy("node1")
	p.gpus = withGPUs(topo.Host{Driver: "570.86"})
	var b strings.Builder
	writeFindings(&b, 120, []*host{p}, nil)
	for _, want := range []string{
		"2, driver 570.86",
		"node1  0    NVIDIA H200  141 GiB  0000:1b:00.0  0          0-47          DEFAULT       NV18\n",
		"node1  1    NVIDIA H200  -        0000:9a:00.0  -          -             -             NV18\n",
		"node1  1:0  MIG-a        -\n", "node1  1:1  1g.18gb      18 GiB\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}

func TestFindingsFitTheTerminal(t *testing.T) {
	ps := connected(4)
	ps[0].findings.MilliCPUs, ps[2].findings.MPI = 1500, "Open MPI, MPICH, MPI 5"
	ps[0].findings.Processor, ps[0].findings.Tuning = "GenuineIntel 6/143", strings.Repeat("shm.read=never;", 12)
	ps[1].gpus = withGPUs(topo.Host{Driver: "570.86"})
	ps[1].gpus.Devices[0].CPUs = strings.Repeat("0-47,", 30)
	for _, width := range []int{80, 100, 200} {
		var b strings.Builder
		writeFindings(&b, width, ps, nil)
		for line := range strings.Lines(b.String()) {
			if len(line)-1 > width {
				t.Errorf("a line has %d columns, want at most %d:\n%s", len(line)-1, width, &b)
			}
		}
	}
}

// TestColumnsStayAlignedWhenAHostFails: a cell under a header begins where the header begins, or
// ends before, whichever hosts failed.
func TestColumnsStayAlignedWhenAHostFails(t *testing.T) {
	for failed := range 4 {
		ps := connected(4)
		ps[1].findings.MilliCPUs = 1500 // a wide cell
		ps[failed] = &host{entry: ps[failed].entry, trouble: errors.New("no"), reached: make([]*ctl.Reached, 4)}
		b := page{width: 120}
		b.writeHosts(ps)
		lines := strings.Split(b.String(), "\n")
		at := strings.Index(lines[0], "memory")
		for i, line := range lines[1:5] {
			want := "16 GiB"
			if i == failed {
				want = "-     "
			}
			if len(line) < at+6 || line[at-2:at+6] != "  "+want {
				t.Errorf("host %d failed: want %q at column %d of %q in\n%s", failed, want, at, line, b.String())
			}
		}
	}
}

// TestHeadersAreExplained: a legend below the table explains its words.
func TestHeadersAreExplained(t *testing.T) {
	b := page{width: 120}
	b.writeHosts(connected(1))
	for _, word := range []string{"log-in", "lockable", "open files", "clock", "UCX"} {
		if strings.Count(b.String(), word) < 2 {
			t.Errorf("%q is not both a header and explained in\n%s", word, b.String())
		}
	}
}

func TestSkewIsWhatNTPSays(t *testing.T) {
	asked := time.Unix(1000, 0)
	for _, ahead := range []time.Duration{0, 5 * time.Second, -time.Hour} {
		received := asked.Add(30*time.Millisecond + ahead)
		sent := received.Add(400 * time.Millisecond)
		offset, blur := skew(asked, asked.Add(460*time.Millisecond), received.UnixNano(), sent.UnixNano())
		if offset != ahead || blur != 30*time.Millisecond {
			t.Errorf("%v ahead: got %v, up to %v", ahead, offset, blur)
		}
	}
}

func TestPairsOfManyHostsFitTheScreenAndSayWhatWasNotTried(t *testing.T) {
	ps := connected(10)
	ps = append(ps, connected(10)...)
	for _, p := range ps {
		p.reached = append(p.reached, make([]*ctl.Reached, 10)...)
	}
	ps[3].reached[4].Trouble = "no answer"
	ps[3].reached[5].Took = 10 * time.Second
	b := page{width: 120}
	b.writePairs(ps)
	if want := "node3  8 of 9   node5       0.10 1ms eth0\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	for n, want := range map[int]string{maxRounds + 1: "to each other: ",
		maxRounds + 2: "to the 32 after it in the list, no others: "} {
		b.Reset()
		if b.writePairs(connected(n)); !strings.Contains(b.String(), want) {
			t.Errorf("%d hosts: no %q in\n%s", n, want, b.String())
		}
	}
}

func TestSizesOfHostsAreWrittenShort(t *testing.T) {
	for n, want := range map[int64]string{ctl.Unlimited: "unlimited", 0: "0 KiB", 64 << 10: "64 KiB", 8 << 20: "8 MiB",
		9 << 30: "9216 MiB", 64 << 30: "64 GiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestRDMAPortsAreListed(t *testing.T) {
	ps := connected(2)
	ps[1].findings.RDMA = []ctl.RDMAPort{
		{Name: "mlx5_0:1", State: "ACTIVE", Link: "InfiniBand", Rate: "100 Gb/sec (4X EDR)", GID: "fe80::1", Domain: 1},
		{Name: "rxe0:1", State: "DOWN", Link: "Ethernet", Domain: -1},
	}
	b := page{width: 120}
	b.writeRDMA(ps)
	want := `
host   RDMA port  state   link        rate                 NUMA node  GID
node1  mlx5_0:1   ACTIVE  InfiniBand  100 Gb/sec (4X EDR)  1          fe80::1
node1  rxe0:1     DOWN    Ethernet                         -
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestProcessorsAreListed(t *testing.T) {
	ps := connected(2)
	ps[0].findings.Processor, ps[0].findings.Tuning = "AuthenticAMD 25/1", ""
	ps[1].findings.Processor, ps[1].findings.Tuning = "GenuineIntel 6/143", "shm.read=32k"
	b := page{width: 120}
	b.writeProcessors(ps)
	want := `
host   processor           tuning
node0  AuthenticAMD 25/1   -
node1  GenuineIntel 6/143  shm.read=32k
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}
