package path

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
)

var update = flag.Bool("update", false, "write testdata/paths.golden")

// topologies are those of the golden file, with their conditions.
var topologies = []struct {
	name string
	Topology
	Rules
	tuned     string
	allocated int
}{
	{name: "2 ranks, 1 host", Topology: Topology{Ranks: 2, Shared: true}},
	{name: "2 ranks, 1 host, memory from Alloc", Topology: Topology{Ranks: 2, Shared: true}, allocated: 1},
	{name: "2 ranks, 1 host, deterministic", Topology: Topology{Ranks: 2, Shared: true}, allocated: 1,
		Rules: Rules{Deterministic: true}},
	{name: "4 ranks, 1 host, oversubscribed, memory from Alloc", Topology: Topology{Ranks: 4, Shared: true},
		allocated: 1, Rules: Rules{Oversubscribed: true}},
	{name: "4 ranks, 1 host, oversubscribed, where the kernel copies", Topology: Topology{Ranks: 4, Shared: true},
		Rules: Rules{Oversubscribed: true}, tuned: "shm.read=32k"},
	{name: "4 ranks, 1 host, where the kernel copies", Topology: Topology{Ranks: 4, Shared: true},
		tuned: "shm.read=32k"},
	{name: "16 ranks, 1 host, where the kernel copies", Topology: Topology{Ranks: 16, Shared: true},
		tuned: "shm.read=32k"},
	{name: "4 ranks, 1 host, tuned", Topology: Topology{Ranks: 4, Shared: true},
		tuned: "allreduce:16k-64k:circulant;barrier:dissemination;shm.large=16k"},
	{name: "4 ranks, 1 host, devices", Topology: Topology{Ranks: 4, Shared: true, Devices: true}},
	{name: "4 ranks, 1 host, devices, NCCL", Topology: Topology{Ranks: 4, Shared: true, Devices: true, NCCL: true}},
	{name: "4 ranks, 2 hosts", Topology: Topology{Ranks: 4, Hier: true, Even: true, Packed: true},
		Rules: Rules{Hosts: 2}},
	{name: "4 ranks, 2 hosts, oversubscribed, memory from Alloc",
		Topology: Topology{Ranks: 4, Hier: true, Even: true, Packed: true}, allocated: 1,
		Rules: Rules{Hosts: 2, Oversubscribed: true}},
	{name: "5 ranks, 2 hosts, not even, not neighbours", Topology: Topology{Ranks: 5, Hier: true},
		Rules: Rules{Hosts: 2}},
	{name: "4 ranks, 2 hosts, devices", Topology: Topology{Ranks: 4, Hier: true, Even: true, Packed: true,
		Devices: true}, Rules: Rules{Hosts: 2}},
	{name: "32 ranks, 4 hosts", Topology: Topology{Ranks: 32, Hier: true, Even: true, Packed: true},
		Rules: Rules{Hosts: 4}},
	{name: "8 ranks, 4 hosts", Topology: Topology{Ranks: 8, Hier: true, Even: true, Packed: true},
		Rules: Rules{Hosts: 4}},
	{name: "8 ranks, 4 hosts, memory from Alloc, deterministic",
		Topology: Topology{Ranks: 8, Hier: true, Even: true, Packed: true}, allocated: 1,
		Rules: Rules{Hosts: 4, Deterministic: true}},
	{name: "4 ranks, 4 hosts", Topology: Topology{Ranks: 4}, Rules: Rules{Hosts: 4}},
	{name: "3 ranks, 1 host, TCP", Topology: Topology{Ranks: 3}, Rules: Rules{Hosts: 1}},
}

// selectors returns the Selectors of topologies, by name.
func selectors(t *testing.T, each func(name string, s *Selector)) {
	for _, x := range topologies {
		if x.Shared {
			x.LargeBuffer = LargeBuffer(x.Ranks)
		}
		if err := x.Tune(x.tuned); err != nil {
			t.Fatal(err)
		}
		s := New(x.Topology, &x.Rules)
		s.AddAllocations(x.allocated)
		each(x.name, s)
	}
}

// The golden file shows which Path each collective takes, and from how many bytes on. Run with
// -update to write it after a change, and read what has changed.
func TestPathsAreThoseOfTheGoldenFile(t *testing.T) {
	var b strings.Builder
	selectors(t, func(name string, s *Selector) { fmt.Fprintf(&b, "== %s\n%s", name, s.Describe()) })
	const file = "testdata/paths.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, golden := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(golden)) {
		if i >= len(got) || i >= len(golden) || got[i] != golden[i] {
			t.Fatalf("line %d of %s differs (-update writes it):\n%s", i+1, file, got[min(i, len(got)-1)])
		}
	}
}

// sample returns a call of n elements in each block.
func sample(k calls.Kind, n, ranks int, op mem.Op) *call.Call {
	one, all := mem.Of(make([]int32, n)), mem.Of(make([]int32, n*ranks))
	counts := make([]int, ranks)
	for i := range counts {
		counts[i] = n
	}
	o, x := new(call.Call), call.Op{Kind: op}
	switch k {
	case calls.Barrier:
		return o.Barrier()
	case calls.Bcast:
		return o.Bcast(0, one)
	case calls.Reduce:
		return o.Reduce(0, one, one, x)
	case calls.Allreduce:
		return o.Allreduce(one, one, x)
	case calls.ReduceScatter:
		return o.ReduceScatter(all, one, counts, x)
	case calls.ReduceScatterBlock:
		return o.ReduceScatterBlock(all, one, x)
	case calls.Allgather:
		return o.Allgather(one, all)
	case calls.Allgatherv:
		return o.Allgatherv(one, all, counts, nil)
	case calls.Gather:
		return o.Gather(0, one, all)
	case calls.Gatherv:
		return o.Gatherv(0, one, all, counts, nil)
	case calls.Scatter:
		return o.Scatter(0, all, one)
	case calls.Scatterv:
		return o.Scatterv(0, all, one, counts, nil)
	case calls.Alltoall:
		return o.Alltoall(all, all)
	case calls.Alltoallv:
		return o.Alltoallv(all, counts, nil, all, counts, nil)
	case calls.Alltoallw:
		return o.Alltoallw(make([]mem.Buffer, ranks), make([]mem.Buffer, ranks))
	case calls.Scan:
		return o.Scan(one, one, x)
	}
	return o.Exscan(one, one, x)
}

// For finds in its row what choose says, at every length: no edge is missing.
func TestRowsHaveAllEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	selectors(t, func(name string, s *Selector) {
		for range 3000 {
			k := calls.Barrier + calls.Kind(rng.IntN(int(calls.Exscan)))
			n, op := rng.IntN(1<<rng.IntN(23)), mem.NoOp
			if k.Reduces() {
				op = []mem.Op{mem.Sum, mem.Custom}[rng.IntN(2)]
			}
			o := &call.Call{Fingerprint: call.Fingerprint{Kind: k, Type: mem.U8, Op: op, Count: int64(n)},
				Op: call.Op{Kind: op}, SendCounts: make([]int, s.Ranks)}
			o.SendCounts[0] = n
			o.RecvCounts = o.SendCounts
			bytes := o.Elements(s.Ranks)
			if s.Shared && k.Counted() {
				bytes = n * s.Ranks // as if all were as long as the longest
			}
			got, want := s.For(o), s.choose(k, s.operandsOf(o), s.allocated > 0, bytes)
			if got.Via == NCCL {
				got = got.Otherwise
			}
			if !equal(got, want) {
				t.Fatalf("%s: %v of %d bytes: %v, want %v", name, k, bytes, got, want)
			}
		}
	})
}

// A Path is a chain that ends without a question about devices, and each question is asked once.
func TestEveryQuestionHasAnotherWay(t *testing.T) {
	selectors(t, func(name string, s *Selector) {
		for _, k := range calls.Collectives {
			for _, n := range s.edges(k) {
				asked := map[Question]bool{}
				for p := s.choose(k, builtIn, s.allocated > 0, n); p != nil; p = p.Otherwise {
					if (p.Ask != Nothing && p.Ask != BlockLengths) != (p.Otherwise != nil) ||
						p.Ask != Nothing && asked[p.Ask] {
						t.Fatalf("%s: %v of %d bytes: %v", name, k, n, p)
					}
					asked[p.Ask] = true
				}
			}
		}
	})
}

func TestLengthsOfCallsAreThoseOfTheWhole(t *testing.T) {
	shared := New(Topology{Ranks: 4, Shared: true, LargeBuffer: 1 << 20}, new(Rules))
	apart := New(Topology{Ranks: 4}, new(Rules))
	for _, k := range calls.Exchanges {
		op := mem.NoOp
		if k.Reduces() {
			op = mem.Sum
		}
		for _, s := range []*Selector{shared, apart} {
			for n := 1; n < 1<<16; n *= 3 {
				o := sample(k, n, 4, op)
				whole := n * 4
				switch {
				case k == calls.Barrier || k.LocalCounts():
					whole = 0
				case k.PerRank():
					whole *= 4
				}
				if got, want := s.For(o), s.choose(k, builtIn, false, whole); !equal(got, want) {
					t.Errorf("%v: %v, want %v", o, got, want)
				}
			}
		}
	}
}

// Uneven blocks go through shared memory as if each were as long as the longest.
func TestSharedMemoryHasRoomForTheLongestBlock(t *testing.T) {
	s := New(Topology{Ranks: 2, Shared: true, LargeBuffer: 1 << 20}, new(Rules))
	send, recv := mem.Of(make([]byte, 9000)), mem.Of(make([]byte, 9010))
	if p := s.For(new(call.Call).Allgatherv(send, recv, []int{10, 9000}, nil)); p.Algorithm != Pipelined {
		t.Errorf("allgatherv of 10 and 9000 bytes: %v, want it pipelined", p)
	}
	if p := s.For(new(call.Call).Gatherv(0, send, recv, []int{10, 9000}, nil)); p.Ask != BlockLengths {
		t.Errorf("gatherv: %v, want the lengths to be asked", p)
	}
	if p := s.Sized(calls.Gatherv, 9000); p.Algorithm != Pipelined {
		t.Errorf("gatherv of 10 and 9000 bytes: %v, want it pipelined", p)
	}
}

// A user's rule means the longest block where ranks share memory, and else the mean of all.
func TestRulesForBlocksOfDifferentLengths(t *testing.T) {
	r := new(Rules)
	if err := r.Tune("allgather:0-600:ring"); err != nil {
		t.Fatal(err)
	}
	send, recv := mem.Of(make([]byte, 990)), mem.Of(make([]byte, 1000))
	for shared, fits := range map[bool]bool{true: false, false: true} {
		s := New(Topology{Ranks: 2, Shared: shared, LargeBuffer: 1 << 20}, r)
		if p := s.For(new(call.Call).Allgatherv(send, recv, []int{10, 990}, nil)); (p.Via == Messages &&
			p.Algorithm == Ring) != fits {
			t.Errorf("shared memory %v: %v, want the rule to fit: %v", shared, p, fits)
		}
	}
}

func TestResolveFollowsTheAnswers(t *testing.T) {
	s := New(Topology{Ranks: 4, Shared: true, Devices: true, NCCL: true, LargeBuffer: 1 << 20}, new(Rules))
	o := sample(calls.Allreduce, 1<<20, 4, mem.Sum)
	p := s.For(o)
	if p.Via != NCCL || p.Ask != OwnDevices {
		t.Fatalf("got %v, want NCCL to be asked about", p)
	}
	for where, want := range map[Where]Via{{}: Shm, {Any: true}: Staged, {Any: true, Own: true}: NCCL} {
		if got := p.Resolve(where); got.Via != want {
			t.Errorf("%+v: %v, want %v", where, got, want)
		}
	}
	if p.OnHost().Via != Shm {
		t.Errorf("on the host: %v", p.OnHost())
	}
	if s.DropNCCL(); s.For(o).Via != Staged {
		t.Errorf("without NCCL: %v", s.For(o))
	}
	if p := New(Topology{Ranks: 4, Shared: true, Devices: true, NCCL: true},
		new(Rules)).For(sample(calls.Allreduce, 1<<20, 4, mem.BAnd)); p.Via == NCCL {
		t.Errorf("NCCL has no bitwise and: %v", p)
	}
}

// C does what takes one step, and no more.
func TestWhatTakesOneStep(t *testing.T) {
	for _, test := range []struct {
		name, tuned string
		Topology
		kind  calls.Kind
		wants int
	}{
		{"bcast", "", Topology{Ranks: 2, Shared: true}, calls.Bcast, chosenFrom - 1},
		{"allreduce in smaller chunks", "shm.chunk=2k", Topology{Ranks: 2, Shared: true}, calls.Allreduce, 1024},
		{"gather", "", Topology{Ranks: 2, Shared: true}, calls.Gather, 2*chosenFrom - 1},
		{"a tuned one", "allreduce:100-:circulant", Topology{Ranks: 2, Shared: true}, calls.Allreduce, 99},
		{"between hosts", "", Topology{Ranks: 2}, calls.Bcast, -1},
	} {
		var r Rules
		if err := r.Tune(test.tuned); err != nil {
			t.Fatal(err)
		}
		if got := New(test.Topology, &r).InOneStep(test.kind, 6000); got != test.wants {
			t.Errorf("%s: up to %d bytes, want %d", test.name, got, test.wants)
		}
	}
}

func TestForTakesNoMemory(t *testing.T) {
	s := New(Topology{Ranks: 2, Shared: true, LargeBuffer: 1 << 20}, new(Rules))
	o := sample(calls.Allreduce, 2, 2, mem.Sum)
	if n := testing.AllocsPerRun(100, func() { s.For(o) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkFor(b *testing.B) {
	s := New(Topology{Ranks: 2, Shared: true, LargeBuffer: 1 << 20}, new(Rules))
	o := sample(calls.Allreduce, 2, 2, mem.Sum)
	for b.Loop() {
		s.For(o)
	}
}

// Elements that do not fit into a bounce buffer go through shared memory one by one, and by
// messages where there are any.
func TestWideElements(t *testing.T) {
	f := call.Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {}}
	few, many, tuned := Topology{Ranks: 2, Shared: true, LargeBuffer: 1 << 20},
		Topology{Ranks: 128, Shared: true, LargeBuffer: 1 << 19}, new(Rules)
	if err := tuned.Tune("barrier:dissemination"); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		topology Topology
		rules    *Rules
		kind     calls.Kind
		size     int
		want     Path
	}{
		{few, new(Rules), calls.Allreduce, 16 << 10, Path{Via: Shm, Algorithm: Rsag}},
		{few, new(Rules), calls.Allreduce, 16<<10 + 1, Path{Via: Shm, Algorithm: ByElement}},
		{few, new(Rules), calls.Reduce, 1 << 20, Path{Via: Shm, Algorithm: ByElement}},
		{few, new(Rules), calls.ReduceScatterBlock, 8 << 10, Path{Via: Shm, Algorithm: Pipelined}},
		{few, new(Rules), calls.ReduceScatterBlock, 9 << 10, Path{Via: Shm, Algorithm: ByElement}},
		{many, new(Rules), calls.ReduceScatter, 128, Path{Via: Shm, Algorithm: Pipelined}},
		{many, new(Rules), calls.ReduceScatter, 129, Path{Via: Shm, Algorithm: ByElement}},
		{few, tuned, calls.Allreduce, 16<<10 + 1, Path{Via: Messages, Algorithm: RecursiveDoubling}},
		{Topology{Ranks: 4, Hier: true, Even: true, Packed: true}, new(Rules), calls.Allreduce, 16 << 10,
			Path{Via: Hier, Algorithm: Leader}},
		{Topology{Ranks: 4, Hier: true, Even: true, Packed: true}, new(Rules), calls.Allreduce, 16<<10 + 1,
			Path{Via: Messages, Algorithm: Direct}},
	} {
		b := mem.HostElements(x.size, x.topology.Ranks, make([]byte, x.topology.Ranks*x.size))
		o := new(call.Call)
		switch one := b.Slice(0, 1); x.kind {
		case calls.Reduce:
			o.Reduce(0, one, one, f)
		case calls.Allreduce:
			o.Allreduce(one, one, f)
		case calls.ReduceScatterBlock:
			o.ReduceScatterBlock(b, one, f)
		default:
			counts := make([]int, x.topology.Ranks)
			for i := range counts {
				counts[i] = 1
			}
			o.ReduceScatter(b, one, counts, f)
		}
		if p := New(x.topology, x.rules).For(o); p.Via != x.want.Via || p.Algorithm != x.want.Algorithm {
			t.Errorf("%v of %d ranks: %v, want %v", o, x.topology.Ranks, p, &x.want)
		}
	}
}
