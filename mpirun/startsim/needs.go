package startsim

import (
	"fmt"
	"net/netip"
	"time"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/link"
)

// sizes are the bytes of messages of gompirun and agents, for one host.
type sizes struct {
	start    int // the order to a relay to start an agent
	hello    int // an agent's description of its host
	layout   int // the placement of all ranks
	launch   int // the host's part of the launch
	welcome  int // layout and launch, for one rank
	card     int // of one rank
	cards    int // of the ranks of one host
	gathered int // of all ranks
	orders   int // overhead of a message with orders, for each host they are for
	drained  int
}

const (
	cardBytes        = 150     // of a rank with two addresses
	cardBytesOfOne   = 87      // where all ranks are on one host
	environmentBytes = 2 << 10 // variables of the user that go to all hosts
	coresOfHost      = 16      // in a hello, each with two threads
)

// sizesOf encodes the messages of such a job.
func sizesOf(ranks, perHost, hosts int) sizes {
	names, runs := make([]string, hosts), make([]wire.Run, hosts)
	for i := range hosts {
		names[i], runs[i] = fmt.Sprintf("node%05d", i), wire.Run{Node: i, Count: perHost}
	}
	last := hosts - 1
	launch := &ctl.Launch{
		JobID: "0193ffff-ffff-7fff-bfff-ffffffffffff", Size: ranks, Node: last,
		MasterAddr: "10.100.100.100", MasterPort: 40000, Remote: true, Dir: "/home/user/job", Window: 1 << 20,
		Heartbeat: 10 * time.Second, Cores: coresOfHost, Env: []string{string(make([]byte, environmentBytes))},
		Programs: []ctl.Program{{Argv: []string{"/home/user/job/program", "-of", "some", "arguments"}}},
	}
	hello := &ctl.Hello{
		Version: ctl.Version, Host: names[last], Machine: launch.JobID, Network: launch.JobID, Port: 40000,
		Address: launch.MasterAddr, Launcher: launch.MasterAddr,
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.100.100.100/16"),
			netip.MustParsePrefix("fe80::1234:5678:9abc:def0/64")},
	}
	for i := range coresOfHost {
		hello.Cores = append(hello.Cores, []int{i, i + coresOfHost})
	}
	hello.Numa, hello.L3, hello.Packages = [][]int{all(2 * coresOfHost)}, [][]int{all(2 * coresOfHost)},
		[][]int{all(2 * coresOfHost)}
	for r := max(0, ranks-perHost); r < ranks; r++ {
		launch.Ranks = append(launch.Ranks, ctl.Rank{Rank: r, CPUs: []int{r % coresOfHost}})
	}
	card := make([]byte, cardBytes)
	if hosts == 1 {
		card = card[:cardBytesOfOne]
	}
	cards := func(n int) (list [][]byte) {
		for range n {
			list = append(list, card)
		}
		return list
	}
	t, length := link.SizesOf(hosts), func(m ctl.Message) int { return len(ctl.Append(nil, m)) }
	return sizes{
		start: t.Start, orders: t.Orders, hello: length(hello) + t.Report, launch: length(launch) + t.Orders,
		layout:   length(&ctl.Layout{Placement: runs, Hosts: names}),
		welcome:  len(wire.Append(nil, &wire.Welcome{Size: ranks, JobID: launch.JobID, Placement: runs, Hosts: names})),
		card:     len(wire.Append(nil, &wire.Card{Data: card})),
		cards:    length(&ctl.Cards{Data: cards(min(perHost, ranks))}) + t.Report,
		gathered: length(&ctl.Gathered{Frame: wire.Append(nil, &wire.Cards{Data: cards(ranks)})}),
		drained:  length(&ctl.Drained{}) + t.Report,
	}
}

func all(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// forAll returns the bytes that a host gets of a broadcast of size bytes. A relay also gets the
// numbers of the hosts below it.
func (b *build) forAll(h *host, size int) int {
	if len(h.below) == 0 {
		return size
	}
	return size + b.sizes.orders + numberBytes*(h.all()-1)
}

const numberBytes = 3 // of a host's number, in a list of hosts

// Needs are upper bounds of a job's needs besides time: bytes of memory and open files.
type Needs struct {
	Rank, Host, Launcher int64 // memory of a rank, of a host's ranks and agent, of gompirun's host
	RankFiles            int   // descriptors
	AgentFiles           int
	LauncherFiles        int
}

// Memory in bytes, measured: docs/scale.md.
const (
	rankMemory       = 1300 << 10 // private, of a rank alone
	ofEachRank       = 500        // in each rank, for each rank of the job
	agentMemory      = 12 << 20   // gompirun's own is the same
	loginMemory      = 2 << 20    // private, of an ssh process
	memoryOfAChannel = 76 << 10   // of gompirun, for each agent
)

// needs counts the messages that gompirun has to hold. First the launch orders of all hosts wait
// for their channels at once. Then the cards of all ranks do: once in a star, once for each relay
// in a tree.
func (b *build) needs() Needs {
	z, channels := &b.sizes, len(b.root.below)
	waiting := len(b.hosts) * z.launch
	if b.found.Depth > 1 {
		waiting = max(waiting, channels*z.gathered)
	}
	n := Needs{
		Rank: rankMemory + ofEachRank*int64(b.ranks),
		Launcher: agentMemory + int64(waiting+z.gathered) + int64(len(b.hosts))*memoryOfAChannel +
			int64(b.found.Logins)*loginMemory,
		RankFiles: b.perHost + 17, AgentFiles: max(64+b.perHost, 7*b.perHost) + 32,
		LauncherFiles: 10 + channels*filesOfLogin,
	}
	n.Host = int64(b.perHost)*(n.Rank+int64(z.gathered)) + agentMemory
	return n
}

const filesOfLogin = 4 // three pipes, and a handle on the process
