package hostfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// longestName is the limit of a name here, as in DNS, in bytes.
const longestName = 253

// ExpandNodes expands a Slurm node list, such as SLURM_JOB_NODELIST:
//
//	gnode[2-5,07-11],rack[1-2]n[0-1]-ib
//
// The names come in the order of the list, which is also the order of Slurm's counts; the last
// range varies fastest. More than MaxHosts names are an error.
func ExpandNodes(list string) ([]string, error) {
	names := []string{}
	for _, pattern := range splitNodes(list) {
		more, err := expand(pattern, MaxHosts-len(names))
		if err != nil {
			return nil, fmt.Errorf("node list %s: %w", quoteLine(list), err)
		}
		names = append(names, more...)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("node list %q: no node in it: want for example n[01-04]", list)
	}
	return names, nil
}

// splitNodes splits at commas and blanks outside brackets.
func splitNodes(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',', ' ', '\t', '\r', '\n':
			return depth <= 0
		}
		return false
	})
}

// ParseCounts expands Slurm's repetition lists, such as SLURM_TASKS_PER_NODE: "2(x3),1" is 2 2 2
// 1. More than MaxHosts counts are an error.
func ParseCounts(list string) ([]int, error) {
	var counts []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		count, reps, err := parseCount(part)
		if err != nil {
			return nil, fmt.Errorf("counts %s: %q: %w", quoteLine(list), part, err)
		}
		if len(counts)+reps > MaxHosts {
			return nil, fmt.Errorf("counts %s: want %d or fewer", quoteLine(list), MaxHosts)
		}
		counts = append(counts, slices.Repeat([]int{count}, reps)...)
	}
	return counts, nil
}

// parseCount reads N or N(xTIMES).
func parseCount(s string) (count, reps int, err error) {
	digits, times, repeated := strings.Cut(s, "(x")
	if count, err = number(digits, MaxSlots); err != nil || !repeated {
		return count, 1, err
	}
	times, closed := strings.CutSuffix(times, ")")
	if !closed {
		return 0, 0, errors.New("want a count, or count(xTIMES) as in 2(x3)")
	}
	reps, err = number(times, MaxHosts)
	return count, reps, err
}

// A span is a range of a bracket group: the numbers lo to hi, written with at least width digits.
type span struct{ lo, hi, width int }

// A piece of a pattern is fixed text, or a choice of numbers.
type piece struct {
	text  string
	spans []span // nil for text
	count int    // numbers in spans
}

// expand returns the names of a pattern with ranges, at most limit of them.
func expand(pattern string, limit int) ([]string, error) {
	pieces, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	total, longest := 1, 0
	for _, pc := range pieces {
		longest += pc.width()
		if pc.spans != nil {
			total *= pc.count // both are at most MaxHosts: no overflow
		}
		if total > limit {
			return nil, fmt.Errorf("%s stands for too many hosts: want %d or fewer in all",
				quoteLine(pattern), MaxHosts)
		}
	}
	if longest > longestName {
		return nil, fmt.Errorf("host %s: want a name of %d bytes or fewer", quoteLine(pattern), longestName)
	}
	out := []string{""}
	for _, pc := range pieces {
		out = pc.appendTo(out)
	}
	if !validName(out[0]) { // the other names differ in digits alone
		return nil, fmt.Errorf("host %q: want a name of letters, digits and ._-, or an address", out[0])
	}
	return out, nil
}

// width returns the most bytes that pc adds to a name.
func (pc piece) width() int {
	w := len(pc.text)
	for _, sp := range pc.spans {
		w = max(w, sp.width, len(strconv.Itoa(sp.hi)))
	}
	return w
}

// appendTo returns every name of heads followed by every value of pc.
func (pc piece) appendTo(heads []string) []string {
	if pc.spans == nil {
		for i := range heads {
			heads[i] += pc.text
		}
		return heads
	}
	out := make([]string, 0, len(heads)*pc.count)
	for _, head := range heads {
		for _, sp := range pc.spans {
			for n := sp.lo; n <= sp.hi; n++ {
				digits := strconv.Itoa(n)
				zeros := strings.Repeat("0", max(0, sp.width-len(digits)))
				out = append(out, head+zeros+digits)
			}
		}
	}
	return out
}

func parsePattern(pattern string) ([]piece, error) {
	var pieces []piece
	for rest := pattern; rest != ""; {
		text, after, found := strings.Cut(rest, "[")
		if strings.Contains(text, "]") {
			return nil, fmt.Errorf("%q: a ] without its [", pattern)
		}
		if text != "" {
			pieces = append(pieces, piece{text: text})
		}
		if !found {
			break
		}
		group, tail, closed := strings.Cut(after, "]")
		if !closed {
			return nil, fmt.Errorf("%q: a [ without its ]", pattern)
		}
		pc, err := parseGroup(group)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", pattern, err)
		}
		pieces, rest = append(pieces, pc), tail
	}
	if len(pieces) == 0 || pieces[0].spans != nil {
		return nil, fmt.Errorf("host %q: want a name that begins with a letter or digit", pattern)
	}
	return pieces, nil
}

// parseGroup reads the text between brackets: 1,3,08-11.
func parseGroup(group string) (piece, error) {
	var pc piece
	for part := range strings.SplitSeq(group, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		if !ranged {
			hi = lo
		}
		sp := span{width: len(lo)}
		var errLo, errHi error
		sp.lo, errLo = rangeEnd(lo)
		sp.hi, errHi = rangeEnd(hi)
		if errLo != nil || errHi != nil || sp.lo > sp.hi {
			return piece{}, fmt.Errorf("range %q: want a number, or two with the smaller one first", part)
		}
		if pc.count += sp.hi - sp.lo + 1; pc.count > MaxHosts {
			return piece{}, fmt.Errorf("range %q: want %d hosts or fewer in all", part, MaxHosts)
		}
		pc.spans = append(pc.spans, sp)
	}
	return pc, nil
}

func rangeEnd(s string) (int, error) {
	const mostDigits = 18 // so that any number fits in 64 bits
	if !allDigits(s) || len(s) > mostDigits {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// validName reports whether s may be a host or a user: it never begins with "-", as an option of
// ssh does, and has no special characters of a shell or of this package's grammar.
func validName(s string) bool {
	for i, r := range []byte(s) {
		switch {
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_':
		case (r == '.' || r == '-') && i > 0:
		default:
			return false
		}
	}
	return s != ""
}
