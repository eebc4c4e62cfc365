package plan

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Label is the values of a rank in patterns of prefixes and file names: hydra's patterns, such as
// %r and %h, and our own %l.
type Label struct {
	Rank  int
	Local int // among the ranks of its host
	Host  string
	Node  int // number of the host in the job
}

// Labels returns the labels of all ranks.
func (p *Plan) Labels() []Label {
	labels := make([]Label, len(p.Ranks))
	for i, r := range p.Ranks {
		labels[i] = Label{Rank: r.Rank, Local: r.LocalRank, Host: p.Hosts[r.Node].Name, Node: r.Node}
	}
	return labels
}

// CheckPattern returns the error of a pattern, if any.
func CheckPattern(pattern string) error {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		if i++; i == len(pattern) || !strings.ContainsRune("rlghpt%", rune(pattern[i])) {
			return errors.New("want %r (rank), %l (rank on its host), %h (host), %p (number of the host), " +
				"%g (number of the job, 0), %t (seconds since 1970) or %% after a %")
		}
	}
	return nil
}

// Expand returns a pattern with its words replaced by l and a time. Each job is the only job of its
// gompirun: %g is 0.
func (l Label) Expand(pattern string, now time.Time) string {
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(l.Rank), "%l", strconv.Itoa(l.Local), "%h", l.Host,
		"%p", strconv.Itoa(l.Node), "%g", "0", "%t", strconv.FormatInt(now.Unix(), 10)).Replace(pattern)
}
