package path

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Tune adds rules to r, which come before those it has, and sets thresholds. A call that one of the
// rules fits goes by messages, also where another way is faster. The grammar, in which lines and
// semicolons are the same:
//
//	allreduce:0-16k:rdouble,16k-:circulant;scan:chain;shm.large=64k
//
// For each collective a list of rules; a rule is an algorithm with conditions before it: a range of
// bytes (of the vector; of one rank's block in gather, scatter, allgather, alltoall and
// reducescatter; the end is exclusive; k, m and g are powers of 1024), np5- for at least 5 ranks,
// spread for several hosts and more ranks than hosts. The names of thresholds stand in
// thresholds.go; "never" is a length that none has. After an error r is as before.
func (r *Rules) Tune(s string) error {
	with := *r
	for _, item := range strings.FieldsFunc(s, func(c rune) bool { return c == ';' || c == '\n' }) {
		if err := with.tune(strings.TrimSpace(item)); err != nil {
			return err
		}
	}
	*r = with
	return nil
}

func (r *Rules) tune(item string) error {
	if name, size, ok := strings.Cut(item, "="); ok {
		return r.setThreshold(strings.TrimSpace(name), strings.TrimSpace(size))
	}
	name, list, ok := strings.Cut(item, ":")
	if !ok {
		return fmt.Errorf("%q: want collective:rule,rule..., such as allreduce:0-16k:rdouble,16k-:circulant, or threshold=bytes", item)
	}
	i, err := parseCollective(strings.TrimSpace(name))
	if err != nil {
		return err
	}
	rules := slices.Clone(r.tuned[i]) // they may be shared
	for text := range strings.SplitSeq(list, ",") {
		x, err := parseRule(catalogue[i].methods, strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("%s: rule %q: %w", name, text, err)
		}
		rules = append(rules, x)
	}
	r.tuned[i] = rules
	return nil
}

// retired are thresholds of earlier versions. Ranks measure which copy is fastest.
var retired = []string{"shm.ring.nontemporal", "shm.ring.string", "shm.read.shared", "shm.read.many"}

func (r *Rules) setThreshold(name, size string) error {
	if slices.Contains(retired, name) {
		r.Ignored = append(r.Ignored, name)
		return nil
	}
	var names []string
	for t, known := range thresholds {
		if known.name != name {
			names = append(names, known.name)
			continue
		}
		n, err := parseSize(size)
		if size == "never" && known.most == most {
			n, err = most, nil
		}
		if err == nil && (n < known.least || n > known.most) {
			err = fmt.Errorf("%q: want %s to %s", size, formatSize(known.least), formatSize(known.most))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.set[t] = threshold{bytes: n, set: true}
		return nil
	}
	return fmt.Errorf("unknown threshold %q: want %s", name, strings.Join(names, ", "))
}

// parseCollective returns the position of a collective in the catalogue.
func parseCollective(name string) (int, error) {
	var names []string
	for i := range catalogue {
		if catalogue[i].kind.String() == name {
			return i, nil
		}
		names = append(names, catalogue[i].kind.String())
	}
	return 0, fmt.Errorf("unknown collective %q: want %s", name, strings.Join(names, ", "))
}

func parseRule(methods []Method, text string) (r rule, err error) {
	conds := strings.Split(text, ":")
	alg := conds[len(conds)-1]
	var names []string
	for _, m := range methods {
		if names = append(names, m.Algorithm.String()); names[len(names)-1] == alg {
			r.alg = m.Algorithm
		}
	}
	if r.alg == None {
		return r, fmt.Errorf("unknown algorithm %q: want %s", alg, strings.Join(names, ", "))
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
	case c == "spread":
		r.spread = true
	case strings.HasPrefix(c, "np"):
		n, ok := strings.CutSuffix(c[2:], "-")
		if r.ranks, err = strconv.Atoi(n); !ok || err != nil || r.ranks < 1 {
			return errors.New("want a least number of ranks, such as np5-")
		}
	default:
		lo, hi, ok := strings.Cut(c, "-")
		if !ok {
			return errors.New("want bytes such as 0-16k or 16k-, np5- or spread")
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

// String returns the tuning in the form that Tune reads, a line for each collective and threshold.
func (r *Rules) String() string {
	var b strings.Builder
	for i, rules := range r.tuned {
		for j, x := range rules {
			sep := ","
			if j == 0 {
				sep = catalogue[i].kind.String() + ":"
			}
			b.WriteString(sep + x.String())
		}
		if len(rules) > 0 {
			b.WriteByte('\n')
		}
	}
	for t, x := range r.set {
		if x.set {
			fmt.Fprintf(&b, "%s=%s\n", thresholds[t].name, formatSize(x.bytes))
		}
	}
	return b.String()
}

func (x rule) String() string {
	s := ""
	if x.from > 0 || x.to > 0 {
		s = formatSize(x.from) + "-"
		if x.to > 0 {
			s += formatSize(x.to)
		}
		s += ":"
	}
	if x.ranks > 0 {
		s += fmt.Sprintf("np%d-:", x.ranks)
	}
	if x.spread {
		s += "spread:"
	}
	return s + x.alg.String()
}
