package output

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Who is what patterns tell of a rank.
type Who struct {
	Rank int
	Host string
	Node int // number of the host in the job
}

// CheckPattern says what is wrong with a pattern, if anything is.
func CheckPattern(pattern string) error {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			continue
		}
		if i++; i == len(pattern) || !strings.ContainsRune("rghpt%", rune(pattern[i])) {
			return errors.New("want %r (rank), %h (host), %p (number of the host), %g (number of the job, 0), %t (seconds since 1970) or %% after a %")
		}
	}
	return nil
}

// expand returns a pattern with the facts of a rank and a time in place of hydra's
// words. Each job is the only one of its gompirun: %g is 0.
func expand(pattern string, who Who, now time.Time) string {
	return strings.NewReplacer("%%", "%", "%r", strconv.Itoa(who.Rank), "%h", who.Host, "%p", strconv.Itoa(who.Node),
		"%g", "0", "%t", strconv.FormatInt(now.Unix(), 10)).Replace(pattern)
}
