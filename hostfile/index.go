package hostfile

import (
	"net/netip"
	"strings"
)

// Same reports whether two names mean the same host: equal except for case, or one of them the
// other's first label (node01 and node01.cluster). Two different full names are two hosts, and
// addresses must be equal as a whole.
func Same(a, b string) bool {
	x := NewIndex()
	x.Add(a, 0)
	_, ok := x.Find(b)
	return ok
}

// An Index finds hosts by name, by the rule of Same, in constant time.
type Index struct {
	full  map[string]int // whole names
	first map[string]int // first labels of names that have several
}

// NewIndex returns an empty Index.
func NewIndex() *Index {
	return &Index{full: make(map[string]int), first: make(map[string]int)}
}

// Add makes i the answer for name, unless there is an answer already.
func (x *Index) Add(name string, i int) {
	k := indexKey(name)
	if _, ok := x.full[k]; !ok {
		x.full[k] = i
	}
	label, _, dotted := strings.Cut(k, ".")
	if !dotted || isAddr(k) {
		return
	}
	if _, ok := x.first[label]; !ok {
		x.first[label] = i
	}
}

// Find returns the answer for name, false if there is none.
func (x *Index) Find(name string) (int, bool) {
	k := indexKey(name)
	if i, ok := x.full[k]; ok {
		return i, true
	}
	label, _, dotted := strings.Cut(k, ".")
	if !dotted {
		i, ok := x.first[k]
		return i, ok
	}
	if isAddr(k) {
		return 0, false
	}
	i, ok := x.full[label]
	return i, ok
}

func indexKey(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
