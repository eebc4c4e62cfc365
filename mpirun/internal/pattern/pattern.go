// Package pattern reads the words of hydra's patterns, as %r and %h, and %l of our own, in what
// lines of output begin with and in the names of files.
package pattern

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Rank is what patterns expand to for a rank.
type Rank struct {
	Rank  int
	Local int // among the ranks of its host
	Host  string
	Node  int // number of the host in the job
}

// Check returns what is wrong with a pattern, if anything is.
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

// Expand returns a pattern with the facts of a rank and a time in place of hydra's
// words. Each job is the only one of its gompirun: %g is 0.
func Expand(pattern string, r Rank, now time.Time) string {
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(r.Rank), "%l", strconv.Itoa(r.Local), "%h", r.Host, "%p", strconv.Itoa(r.Node),
		"%g", "0", "%t", strconv.FormatInt(now.Unix(), 10)).Replace(pattern)
}
