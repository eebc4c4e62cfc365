package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// A Size is a number of bytes: 8, 64K, 1M or 2G, where K is 1024 bytes.
type Size int

// Set implements pflag.Value.
func (z *Size) Set(s string) error {
	n, err := ParseSize(s)
	if err == nil {
		*z = Size(n)
	}
	return err
}

// String implements pflag.Value.
func (z *Size) String() string { return FormatSize(int(*z)) }

// Type names the value in usage texts.
func (z *Size) Type() string { return "size" }

// Sizes is a list of sizes separated by commas. Setting it replaces the old list.
type Sizes []int

// Set implements pflag.Value.
func (z *Sizes) Set(s string) error {
	var sizes []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := ParseSize(part)
		if err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	*z = sizes
	return nil
}

// String implements pflag.Value.
func (z *Sizes) String() string {
	parts := make([]string, len(*z))
	for i, n := range *z {
		parts[i] = FormatSize(n)
	}
	return strings.Join(parts, ",")
}

// Type names the value in usage texts.
func (z *Sizes) Type() string { return "sizes" }

// unitLetters stand for 1024, 1024 squared and so on.
const unitLetters = "KMGT"

// ParseSize reads a number of bytes, 0 or more: digits, optionally K, M, G or T, each 1024 times
// the one before, in either case, then optionally B or iB.
func ParseSize(s string) (int, error) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	n, err := strconv.Atoi(digits)
	unit := strings.ToUpper(s[len(digits):])
	shift := 0
	if len(unit) > 0 {
		if i := strings.IndexByte(unitLetters, unit[0]); i >= 0 {
			shift, unit = 10*(i+1), strings.TrimPrefix(unit[1:], "I")
		}
	}
	if err != nil || unit != "" && unit != "B" || n > math.MaxInt>>shift {
		return 0, fmt.Errorf("size %q: want bytes, as 8, 64K, 1M or 2G", s)
	}
	return n << shift, nil
}

// FormatSize writes n bytes with the largest unit that divides it: 1536 is 1536, 2048 is 2K.
func FormatSize(n int) string {
	unit := ""
	for i := 0; i < len(unitLetters) && n != 0 && n%1024 == 0; i++ {
		n, unit = n/1024, unitLetters[i:i+1]
	}
	return strconv.Itoa(n) + unit
}
