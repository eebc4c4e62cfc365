// Package pattern expands hydra's patterns, such as %r and %h, and our own %l, in prefixes of
// output lines and in file names.
package pattern

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Rank is the values of patterns for a rank.
type Rank struct {
	Rank  int
	Local int // among the ranks of its host
	Host  string
	Node  int // number of the host in the job
}

// Check returns the error of a pattern, if any.
func Check(pattern string) error {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		if i++; i == len(pattern) || !strings.ContainsRune("rlghpt%", rune(pattern[i])) {
			return errors.New("want %r (rank), %l (rank on its host), %h (host), %p (number of the host), %g (number of the job, 0), %t (seconds since 1970) or %% after a %")
		}
	}
	return nil
}

// Expand returns a pattern with its words replaced by the facts of a rank and a time. Each job is
// the only job of its gompirun: %g is 0.
func Expand(pattern string, r Rank, now time.Time) string {
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(r.Rank), "%l", strconv.Itoa(r.Local), "%h", r.Host, "%p", strconv.Itoa(r.Node),
		"%g", "0", "%t", strconv.FormatInt(now.Unix(), 10)).Replace(pattern)
}
