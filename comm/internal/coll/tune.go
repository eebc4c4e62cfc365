package coll

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tune adds rules to t, which come before those it has. A call that one of them fits goes
// by messages, whatever there is that is faster. The grammar, in which
// lines and semicolons are the same:
//
//	allreduce:0-16k:rdouble,16k-:ring;barrier:tree
//
// For each collective a list of rules; a rule is an algorithm with conditions
// before it: a range of bytes (of the vector; of one rank's block in gather,
// scatter, allgather, alltoall and reducescatter; the end is exclusive; k, m and
// g are powers of 1024), np5- for at least 5 ranks, pow2 for a power of two ranks,
// crowded for a host with more ranks than processors, remote for several hosts,
// spread for more ranks than hosts besides. After an error t is as before.
func (t *Table) Tune(s string) error {
	added := t.tuned
	items := strings.FieldsFunc(s, func(c rune) bool { return c == ';' || c == '\n' })
	for _, item := range items {
		if err := parseRules(&added, strings.TrimSpace(item)); err != nil {
			return err
		}
	}
	t.tuned, t.tunes = added, len(items) > 0 || t.tunes
	return nil
}

func parseRules(added *[numKinds][]rule, item string) error {
	name, list, ok := strings.Cut(item, ":")
	if !ok {
		return fmt.Errorf("%q: want collective:rule,rule..., such as allreduce:0-16k:rdouble,16k-:ring", item)
	}
	k, err := parseKind(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	rules := slices.Clone(added[k]) // they may be shared
	for text := range strings.SplitSeq(list, ",") {
		r, err := parseRule(k, strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%s: rule %q: %w", name, text, err)
		}
		rules = append(rules, r)
	}
	added[k] = rules
	return nil
}

func parseKind(name string) (kind, error) {
	var names []string
	for k, c := range catalogue {
		if c.name == name {
			return kind(k), nil
		}
		names = append(names, c.name)
	}
	return 0, fmt.Errorf("unknown collective %q: want %s", name, strings.Join(names, ", "))
}

func parseRule(k kind, text string) (r rule, err error) {
	conds := strings.Split(text, ":")
	r.alg = conds[len(conds)-1]
	var names []string
	for _, a := range catalogue[k].algs {
		names = append(names, a.name)
	}
	if !slices.Contains(names, r.alg) {
		return r, fmt.Errorf("unknown algorithm %q: want %s", r.alg, strings.Join(names, ", "))
	}
	for _, c := range conds[:len(conds)-1] {
		if err := r.parseCondition(c); err != nil {
			return r, fmt.Errorf("condition %q: %w", c, err)
		}
	}
	return r, nil
}

func (r *rule) parseCondition(c string) (err error) {
	switch {
	case c == "crowded":
		r.crowded = true
	case c == "remote":
		r.remote = true
	case c == "spread":
		r.spread = true
	case c == "pow2":
		r.pow2 = true
	case strings.HasPrefix(c, "np"):
		n, ok := strings.CutSuffix(c[2:], "-")
		if r.ranks, err = strconv.Atoi(n); !ok || err != nil || r.ranks < 1 {
			return errors.New("want a least number of ranks, such as np5-")
		}
	default:
		lo, hi, ok := strings.Cut(c, "-")
		if !ok {
			return errors.New("want bytes such as 0-16k or 16k-, np5-, pow2, crowded, remote or spread")
		}
		if r.from, err = parseSize(lo); err != nil {
			return err
		}
		if r.to = 0; hi != "" {
			if r.to, err = parseSize(hi); err == nil && r.to <= r.from {
				err = errors.New("want an end above the start")
			}
		}
	}
	return err
}

func parseSize(s string) (int64, error) {
	digits, shift := s, 0
	if i := len(s) - 1; i >= 0 {
		if j := strings.IndexByte("kmg", s[i]|0x20); j >= 0 {
			digits, shift = s[:i], 10*(j+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63-shift)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number of bytes such as 0, 512 or 16k", s)
	}
	return int64(n) << shift, nil
}

func formatSize(n int64) string {
	i := 0
	for ; n > 0 && n%1024 == 0 && i < 3; i++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + [...]string{"", "k", "m", "g"}[i]
}

// String returns all rules in the form that Tune reads, a line for each
// collective.
func (t *Table) String() string {
	var all [numKinds][]rule
	for k := range all {
		all[k] = slices.Concat(t.rules[k], t.tuned[k])
	}
	return inWords(&all)
}

// inWords is String for some rules.
func inWords(of *[numKinds][]rule) string {
	var b strings.Builder
	for k, rules := range of {
		for i, r := range rules {
			sep := ","
			if i == 0 {
				sep = catalogue[k].name + ":"
			}
			b.WriteString(sep + r.String())
		}
		if len(rules) > 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (r rule) String() string {
	s := ""
	if r.from > 0 || r.to > 0 {
		s = formatSize(r.from) + "-"
		if r.to > 0 {
			s += formatSize(r.to)
		}
		s += ":"
	}
	if r.ranks > 0 {
		s += fmt.Sprintf("np%d-:", r.ranks)
	}
	if r.pow2 {
		s += "pow2:"
	}
	if r.crowded {
		s += "crowded:"
	}
	if r.remote {
		s += "remote:"
	}
	if r.spread {
		s += "spread:"
	}
	return s + r.alg
}

// Flags of an encoded Table.
const (
	deterministic = 1 << iota
	crowded
	allFlags = deterministic | crowded
)

// Encode returns t for Decode on other ranks: a byte of flags, the number of
// hosts, the rules as text, the built-in ones before those of Tune.
func (t *Table) Encode() []byte {
	flags := byte(0)
	if t.Deterministic {
		flags |= deterministic
	}
	if t.Crowded {
		flags |= crowded
	}
	b := binary.AppendUvarint([]byte{flags}, uint64(t.Hosts))
	b = append(b, inWords(&t.rules)...)
	b = append(b, tunedAfter...)
	return append(b, inWords(&t.tuned)...)
}

// tunedAfter stands before the rules of Tune.
const tunedAfter = "\x00"

// Decode returns the Table that Encode encoded.
func Decode(b []byte) (*Table, error) {
	if len(b) == 0 || b[0]&^allFlags != 0 {
		return nil, fmt.Errorf("%q is not an encoded table", b)
	}
	hosts, n := binary.Uvarint(b[1:])
	builtIn, tuned, ok := strings.Cut(string(b[1+max(n, 0):]), tunedAfter)
	if n <= 0 || hosts > math.MaxInt32 || !ok {
		return nil, fmt.Errorf("%q is not an encoded table", b)
	}
	t := &Table{Deterministic: b[0]&deterministic != 0, Crowded: b[0]&crowded != 0, Hosts: int(hosts)}
	if err := t.Tune(builtIn); err != nil {
		return nil, err
	}
	t.rules, t.tuned, t.tunes = t.tuned, t.rules, false
	if err := t.Tune(tuned); err != nil {
		return nil, err
	}
	return t, nil
}

// Describe says which algorithm the calls of a communicator of that many ranks
// use, by their bytes, and what each costs at the least bytes it is used for.
func (t *Table) Describe(ranks int) string {
	var b strings.Builder
	for k := range kind(numKinds) {
		t.describe(&b, k, ranks, slices.Concat(t.rules[k], t.tuned[k]), t.pick)
	}
	return b.String()
}

// DescribeTuned is Describe for the calls that are Tuned.
func (t *Table) DescribeTuned(ranks int) string {
	var b strings.Builder
	for k := range kind(numKinds) {
		rules := t.tuned[k]
		t.describe(&b, k, ranks, rules, func(k kind, ranks int, bytes int64, ordered bool) int {
			return t.find(rules, k, ranks, bytes, ordered)
		})
	}
	return b.String()
}

// describe writes what choose takes for the calls of k, whose rules change where some do.
func (t *Table) describe(b *strings.Builder, k kind, ranks int, rules []rule, choose func(k kind, ranks int, bytes int64, ordered bool) int) {
	edges := []int64{0}
	for _, r := range rules {
		edges = append(edges, r.from, r.to)
	}
	slices.Sort(edges)
	last, c := -1, &catalogue[k]
	for _, from := range slices.Compact(edges) {
		i := choose(k, ranks, from, t.Deterministic && k.reduces())
		switch {
		case i == last:
		case i < 0:
			fmt.Fprintf(b, "%s %s-: not tuned\n", c.name, formatSize(from))
		default:
			a := c.algs[i]
			cost := a.cost(load{ranks: ranks, elems: int(from), size: 1})
			fmt.Fprintf(b, "%s %s-: %s, %s; %d rounds, %d messages, %d bytes in all\n",
				c.name, formatSize(from), a.name, a.doc, cost.rounds, cost.messages, cost.bytes)
		}
		last = i
	}
}
