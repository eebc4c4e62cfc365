package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// The value types below implement pflag.Value: declare a flag with
// set.VarP(&v, name, letter, usage), v holding the default.

// A Count is a whole number, 1 or more. 0 stands for a missing flag.
type Count int

// Set implements pflag.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err := TooLarge(s, math.MaxInt32); err != nil {
		return err
	}
	if err != nil || n < 1 {
		return errors.New("want a whole number, 1 or more")
	}
	*c = Count(n)
	return nil
}

// String implements pflag.Value.
func (c *Count) String() string { return strconv.Itoa(int(*c)) }

// Type names the value in usage texts.
func (c *Count) Type() string { return "N" }

// TooLarge returns an error for a number above most, in digits; nil for anything else.
func TooLarge(s string, most int) error {
	n, err := strconv.Atoi(s)
	if errors.Is(err, strconv.ErrRange) && s[0] != '-' || err == nil && n > most {
		return fmt.Errorf("the number is too large: want at most %d", most)
	}
	return nil
}

// Number returns the value of a flag that sets v to a whole number from lo to hi. want describes
// that range in errors. kind names the value in usage texts.
func Number(v *int, lo, hi int, want, kind string) pflag.Value {
	return &number{v, lo, hi, want, kind}
}

type number struct {
	v          *int
	lo, hi     int
	want, kind string
}

func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	if large := TooLarge(s, n.hi); large != nil && n.hi >= math.MaxInt32 { // unnamed in want
		return large
	}
	if err != nil || v < n.lo || v > n.hi {
		return errors.New("want " + n.want)
	}
	*n.v = v
	return nil
}

func (n *number) String() string { return strconv.Itoa(*n.v) }

func (n *number) Type() string { return n.kind }

// A Duration is a time span, 0 or more: a plain number of seconds, or as 90s, 2m or 1h30m.
type Duration time.Duration

// Set implements pflag.Value.
func (d *Duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if seconds, plain := strconv.ParseFloat(s, 64); plain == nil {
		err = nil
		if !(seconds*1e9 < math.MaxInt64) { // also catches NaN
			err = strconv.ErrRange
		} else {
			v = time.Duration(seconds * 1e9)
		}
	}
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("the time is too long: want at most %d seconds", math.MaxInt64/int64(time.Second))
	}
	if err != nil || v < 0 {
		return errors.New("want seconds, or a duration such as 90s, 2m or 1h30m")
	}
	*d = Duration(v)
	return nil
}

// String implements pflag.Value.
func (d *Duration) String() string { return time.Duration(*d).String() }

// Type names the value in usage texts.
func (d *Duration) Type() string { return "seconds" }
