package path

import (
	"gompi/internal/calls"
	"slices"
	"strings"
	"testing"
)

func TestTunedRulesComeBeforeTheBuiltIn(t *testing.T) {
	table := new(Rules)
	if err := table.Tune("allreduce:0-16k:rdouble, 16k-:circulant; barrier:dissemination\nbcast:1M-:np4-:spread:chain;;"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		k       calls.Kind
		ranks   int
		bytes   int64
		ordered bool
		hosts   int
		want    Algorithm
	}{
		{calls.Allreduce, 2, 0, false, 0, RecursiveDoubling},
		{calls.Allreduce, 5, 16<<10 - 1, false, 0, RecursiveDoubling},
		{calls.Allreduce, 5, 16 << 10, false, 0, Circulant},
		{calls.Allreduce, 2, 1 << 30, false, 2, Circulant},
		{calls.Allreduce, 8, 1 << 30, true, 0, Halving}, // circulant cannot do it: the built-in rules do
		{calls.Barrier, 2, 0, false, 0, Dissemination},
		{calls.Bcast, 24, 1 << 20, false, 2, Chain},
		{calls.Bcast, 2, 1 << 20, false, 2, Binomial},
		{calls.Bcast, 24, 1 << 20, false, 24, ScatterAllgather},
	}
	for _, tt := range tests {
		table.Hosts = tt.hosts
		if got := table.Pick(tt.k, tt.ranks, tt.bytes, tt.ordered); got != tt.want {
			t.Errorf("%v of %d bytes, %d ranks on %d hosts, ordered %v: %v, want %v", tt.k, tt.bytes, tt.ranks,
				tt.hosts, tt.ordered, got, tt.want)
		}
	}
	table.Hosts = 2
	for _, tt := range []struct {
		k       calls.Kind
		ranks   int
		bytes   int64
		ordered bool
		want    Algorithm
	}{
		{calls.Allreduce, 5, 0, false, RecursiveDoubling},
		{calls.Allreduce, 5, 16 << 10, false, Circulant},
		{calls.Allreduce, 5, 16 << 10, true, None}, // circulant cannot do it
		{calls.Barrier, 2, 0, false, Dissemination},
		{calls.Bcast, 4, 1 << 20, false, Chain},
		{calls.Bcast, 3, 1 << 20, false, None},
		{calls.Bcast, 4, 1<<20 - 1, false, None},
		{calls.Reduce, 4, 8, false, None},
		{calls.Gatherv, 4, 8, false, None}, // has no rules
	} {
		if got, ok := table.Tuned(tt.k, tt.ranks, tt.bytes, tt.ordered); got != tt.want || ok != (tt.want != None) {
			t.Errorf("%v of %d bytes, %d ranks, ordered %v: tuned %v, want %v", tt.k, tt.bytes, tt.ranks, tt.ordered,
				got, tt.want)
		}
	}
	if _, ok := new(Rules).Tuned(calls.Barrier, 2, 0, false); ok {
		t.Error("tuning one table changed another: barrier is tuned")
	}
}

func TestOrderedCallsGetOrderedAlgorithms(t *testing.T) {
	for _, r := range []*Rules{{}, {Oversubscribed: true}, {Hosts: 2}} {
		for _, k := range []calls.Kind{calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.Scan} {
			for p := 2; p < 70; p++ {
				for bytes := int64(1); bytes < 1<<32; bytes *= 2 {
					alg := r.Pick(k, p, bytes, true)
					if !slices.ContainsFunc(Methods(k), func(m Method) bool {
						return m.Algorithm == alg && m.Ordered
					}) {
						t.Errorf("%v of %d bytes on %d ranks: %v, want an ordered one", k, bytes, p, alg)
					}
				}
			}
		}
	}
}

func TestTuneErrorsQuoteWhatIsWrongAndSayWhatIsWanted(t *testing.T) {
	tests := []struct{ in, quoted, wanted string }{
		{"allreduce", `"allreduce"`, "collective:rule"},
		{"alreduce:circulant", `"alreduce"`, "barrier, bcast, reduce, allreduce"},
		{"allreduce:0-16k:rdouble,16k-:cirulant", `"cirulant"`, "rdouble, binomial, direct, halving, circulant"},
		{"allreduce:", `""`, "rdouble"},
		{"barrier:ring", `"ring"`, "dissemination"},
		{"allreduce:16q-:circulant", `"16q"`, "512 or 16k"},
		{"allreduce:-16k:circulant", `""`, "512 or 16k"},
		{"allreduce:16k-8k:circulant", `"16k-8k"`, "an end above the start"},
		{"allreduce:np0-:circulant", `"np0-"`, "np5-"},
		{"allreduce:np4:circulant", `"np4"`, "np5-"},
		{"allreduce:busy:circulant", `"busy"`, "spread"},
		{"allreduce:9999999999g-:circulant", `"9999999999g"`, "16k"},
		{"shm.lage=1k", `"shm.lage"`, "shm.large"},
		{"shm.large=1q", `"1q"`, "512 or 16k"},
		{"shm.large=2000g", `"2000g"`, "0 to 1024g"},
		{"shm.chunk=8", `"8"`, "2k to 16k"},
		{"shm.chunk=never", `"never"`, "512 or 16k"},
		{"shm.ring.chunk=128k", `"128k"`, "4k to 64k"},
		{"shm.ring.bytes=1k", `"1k"`, "64k to 2m"},
	}
	for _, tt := range tests {
		table := new(Rules)
		before := table.String()
		err := table.Tune("barrier:dissemination;" + tt.in)
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

func TestTheCatalogueIsSound(t *testing.T) {
	for _, c := range catalogue {
		if m := c.methods[0]; c.kind.Reduces() && !m.Ordered {
			t.Errorf("%v: the first algorithm, %v, does not serve every call", c.kind, m.Algorithm)
		}
		var seen []Algorithm
		for i, m := range c.methods {
			if slices.Contains(seen, m.Algorithm) || m.Doc == "" {
				t.Errorf("%v: %v is there twice or has no description", c.kind, m.Algorithm)
			}
			seen = append(seen, m.Algorithm)
			if i > 0 && !slices.ContainsFunc(c.rules, func(r rule) bool { return r.alg == m.Algorithm }) {
				t.Errorf("%v: no rule ever takes %v", c.kind, m.Algorithm)
			}
		}
	}
}

func TestDecodedRulesChooseAsTheEncoded(t *testing.T) {
	r := &Rules{Deterministic: true, Hosts: 300}
	if err := r.Tune("scan:np3-:spread:5-3g:chain;bcast:chain;shm.large=3k"); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(r.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != r.String() || !got.Deterministic || got.Oversubscribed || got.Hosts != 300 || !got.Tunes() ||
		got.Pick(calls.Bcast, 5, 0, false) != Chain || got.threshold(shmLargeFrom) != 3<<10 {
		t.Errorf("decoded %+v, want %+v", got, r)
	}
	for _, bad := range []string{"", "\x00", "\x40\x01", "\x00\x01nonsense",
		"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("Decode(%q) succeeds, want an error", bad)
		}
	}
}

func FuzzTune(f *testing.F) {
	f.Add("allreduce:0-16k:rdouble,16k-:circulant;scan:chain")
	f.Add("shm.large=4k;hier.chunk=1m")
	f.Add("scan:np3-:spread:5-3g:chain")
	f.Fuzz(func(t *testing.T, s string) {
		first := new(Rules)
		if first.Tune(s) != nil {
			return
		}
		second := new(Rules)
		if err := second.Tune(first.String()); err != nil {
			t.Fatalf("Tune(%q) gives a table that does not read back: %v", s, err)
		}
		if first.String() != second.String() {
			t.Fatalf("Tune(%q) reads back as %q, want %q", s, second.String(), first.String())
		}
		if _, err := Decode(first.Encode()); err != nil {
			t.Fatalf("Decode: %v", err)
		}
		New(Topology{Ranks: 7}, first).Describe() // whatever the rules say, there is a choice
	})
}

// The user's tuning goes before a machine's profile.
func TestTuningGoesBeforeAProfile(t *testing.T) {
	var r Rules
	if from, _ := r.Reads(); from != most {
		t.Errorf("without a profile: reads from %d", from)
	}
	if err := r.Tune("shm.read=16k;shm.read.below=1m"); err != nil {
		t.Fatal(err)
	}
	if from, below := r.Reads(); from != 16<<10 || below != 1<<20 {
		t.Errorf("reads from %d below %d", from, below)
	}
	if err := r.Tune("shm.read=4k"); err != nil {
		t.Fatal(err)
	}
	if from, below := r.Reads(); from != 4<<10 || below != 1<<20 {
		t.Errorf("tuned: reads from %d below %d", from, below)
	}
}

// Names of earlier versions have no effect, and are reported.
func TestRetiredThresholdsAreIgnored(t *testing.T) {
	var r Rules
	const old = "shm.ring.nontemporal=1k;shm.large=3k;shm.ring.string=never;shm.read.shared=1;shm.read.many=2"
	if err := r.Tune(old); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Ignored, retired) || r.String() != "shm.large=3k\n" {
		t.Errorf("ignored %q, and the rules are %q, want %q and the rest", r.Ignored, &r, retired)
	}
}

// What is never reached has a name.
func TestNeverIsALength(t *testing.T) {
	var r Rules
	if err := r.Tune("shm.trial=never;shm.read=never"); err != nil {
		t.Fatal(err)
	}
	if from, _ := r.Reads(); from != most || r.TriesFrom() != most {
		t.Errorf("reads from %d, trials from %d, want %d", from, r.TriesFrom(), int64(most))
	}
}
