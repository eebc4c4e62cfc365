package hostfile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// checkList checks the invariants of every parsed list.
func checkList(t *testing.T, l List) {
	t.Helper()
	if len(l.Hosts)+len(l.Excluded) == 0 || len(l.Hosts) > MaxHosts {
		t.Errorf("%d hosts and %d exclusions", len(l.Hosts), len(l.Excluded))
	}
	for _, h := range l.Hosts {
		if h.Name == "" || strings.HasPrefix(h.Name, "-") || strings.HasPrefix(h.User, "-") {
			t.Errorf("host %+v is empty or could be taken for an option", h)
		}
		if h.Slots < 0 || h.Slots > MaxSlots || h.MaxSlots < 0 || h.MaxSlots > MaxSlots || h.Port < 0 ||
			h.Port > 65535 {
			t.Errorf("host %+v is out of bounds", h)
		}
		if h.MaxSlots > 0 && h.Slots > h.MaxSlots {
			t.Errorf("host %+v has more slots than its limit", h)
		}
	}
}

// small keeps a fuzz worker from spending its time on huge ranges, whose
// bounds have a test of their own.
func small(s string) bool { return len(s) < 1<<10 && strings.Count(s, "[") < 3 }

func FuzzParse(f *testing.F) {
	f.Add("node01 slots=4 max_slots=8\nalice@node02 slots = 2 port=2222\n^node05\nnode05\n")
	f.Add("donner:2\nshakti:3 binding=user:0,2,4 # c\n10.0.0.1:4:pub.example\n")
	f.Add("n1\nn1\nn2\n^n2\n")
	f.Add("node[01-03,7]:2,[fe80::1%eth0]:2 user=u\n/* x\n*/ ::1 // y")
	f.Add("a.x\na.y\na\n^a.z\n")
	f.Add("\ufeffa:*\r\nb 4\r\n")
	f.Add("rank 0=h slot=0-3")
	f.Fuzz(func(t *testing.T, file string) {
		if !small(file) {
			return
		}
		l, err := Parse("hosts", strings.NewReader(file))
		if err != nil {
			return
		}
		checkList(t, l)
		again, err := Parse("hosts", strings.NewReader(l.String()))
		if err != nil {
			t.Fatalf("Parse(%q), which is String of Parse(%q): %v", l.String(), file, err)
		}
		if !reflect.DeepEqual(again.Hosts, l.Hosts) || !reflect.DeepEqual(again.Excluded, l.Excluded) {
			t.Errorf("Parse(%q) =\n%+v, its String reads back as\n%+v", file, l, again)
		}
	})
}

func FuzzParseList(f *testing.F) {
	for _, s := range []string{"a", "a,b:2,a", "a:4,b:*,c", "u@[::1]:2,^x", "n[1-3]:2 port=22,n2", "a slots=2 # b",
		"a,,b", "::1%a@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if !small(list) {
			return
		}
		l, err := ParseList("-H", list)
		if err != nil {
			return
		}
		checkList(t, l)
		again, err := ParseList("-H", l.String())
		if err != nil {
			t.Fatalf("ParseList(%q), which is String of ParseList(%q): %v", l.String(), list, err)
		}
		if !reflect.DeepEqual(again.Hosts, l.Hosts) || !reflect.DeepEqual(again.Excluded, l.Excluded) {
			t.Errorf("ParseList(%q) =\n%+v, its String reads back as\n%+v", list, l, again)
		}
	})
}

func FuzzExpandNodes(f *testing.F) {
	for _, s := range []string{"n1", "gnode[2-5,07-11],gnoded1", "r[0-1]n[0-1]-ib", "n[1-2", "n]", "[1]", "n[1-999]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		if !small(list) {
			return
		}
		names, err := ExpandNodes(list)
		if err != nil {
			return
		}
		if len(names) == 0 || len(names) > MaxHosts {
			t.Fatalf("ExpandNodes(%q) returned %d names", list, len(names))
		}
		for _, name := range names {
			if !validName(name) || len(name) > longestName {
				t.Fatalf("ExpandNodes(%q) returned %q", list, name)
			}
		}
		again, err := ExpandNodes(strings.Join(names, ","))
		if err != nil || !slices.Equal(again, names) {
			t.Errorf("ExpandNodes(%q) = %q, which reads back as %q, %v", list, names, again, err)
		}
	})
}

func FuzzParseCounts(f *testing.F) {
	for _, s := range []string{"1", "2(x3),1", "72(x2),36", "2(x", "2(x3)1", "1(x999)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		counts, err := ParseCounts(list)
		if err != nil {
			return
		}
		if len(counts) == 0 || len(counts) > MaxHosts || slices.Min(counts) < 1 || slices.Max(counts) > MaxSlots {
			t.Fatalf("ParseCounts(%q) returned %d counts from %d to %d", list, len(counts), slices.Min(counts),
				slices.Max(counts))
		}
		again, err := ParseCounts(strings.ReplaceAll(strings.Trim(fmt.Sprint(counts), "[]"), " ", ","))
		if err != nil || !slices.Equal(again, counts) {
			t.Errorf("ParseCounts(%q) does not read back: %v", list, err)
		}
	})
}
