package limits

import (
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/cli"
)

// A LinkFlag is the value of the flag -link: what a link carries each way, with what passes at once
// after a pause.
type LinkFlag struct {
	Link
	text string
}

// LinkUsage explains the flag.
const LinkUsage = "what the link of each host carries each way, with what passes at once after a pause: 1gbit or 1gbit,256K; results are held against it"

// units of rates as tc has them, in bytes per second.
var units = []struct {
	name string
	rate float64
}{{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}}

// Set implements pflag.Value.
func (l *LinkFlag) Set(s string) error {
	rate, burst, hasBurst := strings.Cut(s, ",")
	l.Link, l.text = Link{}, s
	for _, u := range units {
		if digits, ok := strings.CutSuffix(rate, u.name); ok {
			if n, err := strconv.ParseFloat(digits, 64); err == nil {
				l.Rate = n * u.rate
			}
		}
	}
	if !(l.Rate > 0) || l.Rate > 1e15 {
		return fmt.Errorf("want a rate as 1gbit or 100mbit, not %q", rate)
	}
	if hasBurst {
		n, err := cli.ParseSize(burst)
		if err != nil {
			return err
		}
		l.Burst = n
	}
	return nil
}

// String implements pflag.Value.
func (l *LinkFlag) String() string { return l.text }

// Type implements pflag.Value.
func (l *LinkFlag) Type() string { return "rate" }
