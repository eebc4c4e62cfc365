package coll

import (
	"slices"
	"strings"
	"testing"

	"gompi/internal/mem"
)

// chosen returns the name of the algorithm that t takes.
func chosen(t *Table, k kind, ranks int, bytes int64, ordered bool) string {
	return catalogue[k].algs[t.pick(k, ranks, bytes, ordered)].name
}

func TestTunedRulesComeBeforeTheBuiltIn(t *testing.T) {
	table := NewTable()
	if err := table.Tune("allreduce:0-16k:rdouble, 16k-:ring; barrier:tree\nbcast:1M-:np4-:crowded:chain;;"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		k       kind
		ranks   int
		bytes   int64
		ordered bool
		crowded bool
		want    string
	}{
		{kAllreduce, 2, 0, false, false, "rdouble"},
		{kAllreduce, 5, 16<<10 - 1, false, false, "rdouble"},
		{kAllreduce, 5, 16 << 10, false, false, "ring"},
		{kAllreduce, 2, 1 << 30, false, true, "ring"},
		{kAllreduce, 8, 1 << 30, true, false, "halving"}, // ring cannot do it: the built-in rules do
		{kBarrier, 2, 0, false, false, "tree"},
		{kBcast, 4, 1 << 20, false, true, "chain"},
		{kBcast, 3, 1 << 20, false, true, "binomial"},
		{kBcast, 4, 1 << 20, false, false, "binomial"},
	}
	for _, tt := range tests {
		table.Crowded = tt.crowded
		if got := chosen(table, tt.k, tt.ranks, tt.bytes, tt.ordered); got != tt.want {
			t.Errorf("%s of %d bytes, %d ranks, ordered %v, crowded %v: %s, want %s",
				catalogue[tt.k].name, tt.bytes, tt.ranks, tt.ordered, tt.crowded, got, tt.want)
		}
	}
	table.Crowded = true
	for _, tt := range []struct {
		name  string
		ranks int
		bytes int64
		op    Op
		want  bool
	}{
		{"allreduce", 5, 0, Op{Kind: mem.Sum}, true},
		{"allreduce", 5, 16 << 10, Op{Kind: mem.Sum}, true},
		{"allreduce", 5, 16 << 10, Op{Kind: mem.Custom}, false}, // ring cannot do it
		{"barrier", 2, 0, Op{}, true},
		{"bcast", 4, 1 << 20, Op{}, true},
		{"bcast", 3, 1 << 20, Op{}, false},
		{"bcast", 4, 1<<20 - 1, Op{}, false},
		{"reduce", 4, 8, Op{Kind: mem.Sum}, false},
		{"gatherv", 4, 8, Op{}, false}, // has no rules
	} {
		if got := table.Tuned(tt.name, tt.ranks, tt.bytes, tt.op); got != tt.want {
			t.Errorf("%s of %d bytes, %d ranks, operator %v: tuned %v, want %v", tt.name, tt.bytes, tt.ranks, tt.op.Kind, got, tt.want)
		}
	}
	if got := chosen(NewTable(), kBarrier, 2, 0, false); got != "dissemination" {
		t.Errorf("tuning one table changed another: barrier is %s", got)
	}
}

func TestPowerOfTwoAlgorithmsAreNotTakenForOtherRanks(t *testing.T) {
	table := new(Table)
	if err := table.Tune("allgather:ring,rdouble;reducescatter:ring,halving"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{3, 6, 12} {
		if got := chosen(table, kAllgather, p, 8, false); got != "ring" {
			t.Errorf("allgather on %d ranks: %s, want ring", p, got)
		}
		if got := chosen(table, kReduceScatter, p, 8, false); got != "ring" {
			t.Errorf("reducescatter on %d ranks: %s, want ring", p, got)
		}
	}
	if got := chosen(table, kAllgather, 8, 8, false); got != "rdouble" {
		t.Errorf("allgather on 8 ranks: %s, want rdouble", got)
	}
}

func TestOrderedCallsGetOrderedAlgorithms(t *testing.T) {
	for _, table := range []*Table{NewTable(), {}, {Crowded: true}, {Hosts: 2}} {
		table.rules = NewTable().rules
		for _, k := range []kind{kReduce, kAllreduce, kReduceScatter, kScan} {
			for p := 2; p < 70; p++ {
				for bytes := int64(1); bytes < 1<<32; bytes *= 2 {
					if a := catalogue[k].algs[table.pick(k, p, bytes, true)]; !a.ordered {
						t.Errorf("%s of %d bytes on %d ranks: %s, want an ordered one", catalogue[k].name, bytes, p, a.name)
					}
				}
			}
		}
	}
}

func TestTuneErrorsQuoteWhatIsWrongAndSayWhatIsWanted(t *testing.T) {
	tests := []struct{ in, quoted, wanted string }{
		{"allreduce", `"allreduce"`, "collective:rule"},
		{"alreduce:ring", `"alreduce"`, "barrier, bcast, reduce, allreduce"},
		{"allreduce:0-16k:rdouble,16k-:rign", `"rign"`, "rdouble, direct, tree, halving, circulant, ring"},
		{"allreduce:", `""`, "rdouble"},
		{"barrier:ring", `"ring"`, "dissemination, tree"},
		{"allreduce:16q-:ring", `"16q"`, "512 or 16k"},
		{"allreduce:-16k:ring", `""`, "512 or 16k"},
		{"allreduce:16k-8k:ring", `"16k-8k"`, "an end above the start"},
		{"allreduce:np0-:ring", `"np0-"`, "np5-"},
		{"allreduce:np4:ring", `"np4"`, "np5-"},
		{"allreduce:busy:ring", `"busy"`, "crowded"},
		{"allreduce:9999999999g-:ring", `"9999999999g"`, "16k"},
	}
	for _, tt := range tests {
		table := NewTable()
		before := table.String()
		err := table.Tune("barrier:tree;" + tt.in)
		if err == nil {
			t.Errorf("Tune(%q) succeeds, want an error", tt.in)
			continue
		}
		if s := err.Error(); !strings.Contains(s, tt.quoted) || !strings.Contains(s, tt.wanted) {
			t.Errorf("Tune(%q): %v; want it to quote %s and to name %q", tt.in, err, tt.quoted, tt.wanted)
		}
		if table.String() != before {
			t.Errorf("Tune(%q) failed and changed the table", tt.in)
		}
	}
}

func TestTheBuiltInTableIsSound(t *testing.T) {
	for k, c := range catalogue {
		if a := c.algs[0]; a.pow2 || kind(k).reduces() && !a.ordered {
			t.Errorf("%s: the first algorithm, %s, does not serve every call", c.name, a.name)
		}
		var names []string
		for _, a := range c.algs {
			if slices.Contains(names, a.name) || a.doc == "" {
				t.Errorf("%s: %s is there twice or has no description", c.name, a.name)
			}
			names = append(names, a.name)
			if !slices.ContainsFunc(c.rules, func(r rule) bool { return r.alg == a.name }) {
				t.Errorf("%s: no rule ever takes %s", c.name, a.name)
			}
		}
	}
	// Its own text says the same.
	read := new(Table)
	if err := read.Tune(NewTable().String()); err != nil {
		t.Fatal(err)
	}
	if got, want := read.String(), NewTable().String(); got != want {
		t.Errorf("read back:\n%s\nwant\n%s", got, want)
	}
}

func TestDecodedTableChoosesAsTheEncoded(t *testing.T) {
	table := NewTable()
	table.Deterministic, table.Hosts = true, 300
	if err := table.Tune("scan:np3-:pow2:crowded:remote:spread:5-3g:chain;barrier:tree"); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(table.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != table.String() || !got.Deterministic || got.Crowded || got.Hosts != 300 || !got.Tunes() ||
		!got.Tuned("barrier", 5, 0, Op{}) || got.Tuned("allreduce", 5, 512, Op{}) {
		t.Errorf("decoded %+v, want %+v", got, table)
	}
	for _, bad := range []string{"", "\x00", "\x40\x01", "\x00\x01", "\x00\x01nonsense\x00", "\x00\x01\x00nonsense", "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("Decode(%q) succeeds, want an error", bad)
		}
	}
}

func TestDescribeNamesTheChoiceForEveryRangeOfBytes(t *testing.T) {
	table := NewTable()
	if err := table.Tune("bcast:0-1k:chain,1k-:binomial"); err != nil {
		t.Fatal(err)
	}
	got := table.Describe(6)
	for _, want := range []string{
		"bcast 0-: chain, ", "bcast 1k-: binomial, down a binomial tree: fewest rounds; 2 rounds, 5 messages, 5120 bytes in all\n",
		"allreduce 256k-: circulant, ", "allgather ", "barrier 0-: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("Describe(6) does not say %q:\n%s", want, got)
		}
	}
}

func FuzzTune(f *testing.F) {
	f.Add("allreduce:0-16k:rdouble,16k-:ring;barrier:tree")
	f.Add(NewTable().String())
	f.Add("scan:np3-:pow2:crowded:remote:spread:5-3g:chain")
	f.Fuzz(func(t *testing.T, s string) {
		first := new(Table)
		if first.Tune(s) != nil {
			return
		}
		second := new(Table)
		if err := second.Tune(first.String()); err != nil {
			t.Fatalf("Tune(%q) gives a table that does not read back: %v", s, err)
		}
		if first.String() != second.String() {
			t.Fatalf("Tune(%q) reads back as %q, want %q", s, second.String(), first.String())
		}
		if _, err := Decode(first.Encode()); err != nil {
			t.Fatalf("Decode: %v", err)
		}
		first.Describe(7) // whatever the rules say, there is a choice
	})
}

// idle is a Peers that does nothing.
type idle struct{ rank, size int }

func (p idle) Rank() int                                       { return p.rank }
func (p idle) Size() int                                       { return p.size }
func (idle) Isend(int, mem.Buffer)                             {}
func (idle) Irecv(int, mem.Buffer)                             {}
func (idle) IrecvReduce(int, mem.Buffer, mem.Buffer, Op, bool) {}
func (idle) Wait() error                                       { return nil }
func (idle) Scratch(like mem.Buffer, n int) mem.Buffer         { return like.Slice(0, min(n, like.Len())) }

func TestSmallCallsTakeNoMemory(t *testing.T) {
	table := NewTable()
	buf, all := alloc(mem.F32, 2), alloc(mem.F32, 12)
	for _, p := range []Peers{&idle{1, 2}, &idle{2, 6}} {
		calls := map[string]func() error{
			"barrier":       func() error { return Barrier(p, table) },
			"bcast":         func() error { return Bcast(p, table, 0, buf) },
			"reduce":        func() error { return Reduce(p, table, 0, buf, buf, Op{Kind: mem.Sum}) },
			"allreduce":     func() error { return Allreduce(p, table, buf, buf, Op{Kind: mem.Sum}) },
			"reducescatter": func() error { return ReduceScatterBlock(p, table, all, buf, Op{Kind: mem.Sum}) },
			"allgather":     func() error { return Allgather(p, table, buf, all.Slice(0, 2*p.Size())) },
			"scan":          func() error { return Scan(p, table, buf, buf, Op{Kind: mem.Sum}) },
		}
		for name, call := range calls {
			if n := testing.AllocsPerRun(20, func() {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s on %d ranks allocates %v times, want 0", name, p.Size(), n)
			}
		}
	}
}

func BenchmarkAllreduceOverhead(b *testing.B) {
	table, buf, out := NewTable(), alloc(mem.F32, 2), alloc(mem.F32, 2)
	p := Peers(&idle{1, 2})
	b.ReportAllocs()
	for b.Loop() {
		if err := Allreduce(p, table, buf, out, Op{Kind: mem.Sum}); err != nil {
			b.Fatal(err)
		}
	}
}
