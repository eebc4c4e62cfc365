// Package env is the one table of the environment variables that gompi sets and reads: their names,
// defaults, meaning and readers. docs/environment.md shows the table. The getters read the process
// environment at each call, so they are for start-up, not for loops.
package env

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// String returns the value of the named variable, or its default from the table if the variable is
// unset or empty.
func String(name string) string {
	if s := os.Getenv(name); s != "" {
		return s
	}
	return defaultOf(name)
}

// IsSet reports whether the environment has a value for the variable that is not empty.
func IsSet(name string) bool { return os.Getenv(name) != "" }

// Int returns the variable as a whole number, 0 if unset without a default.
func Int(name string) (int, error) {
	s := String(name)
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, wrong(name, s, "a whole number")
	}
	return n, nil
}

// Bool returns the variable as a truth value, false if unset without a default.
func Bool(name string) (bool, error) {
	s := String(name)
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, nil
	case "", "0", "false", "no", "off":
		return false, nil
	}
	return false, wrong(name, s, "1 or 0")
}

// Bytes returns the variable as a size in bytes, 0 if unset without a default: a whole number,
// optionally with the suffix K, M or G, powers of 1024.
func Bytes(name string) (int64, error) {
	s := String(name)
	if s == "" {
		return 0, nil
	}
	n, ok := ParseBytes(s)
	if !ok {
		return 0, wrong(name, s, "a size such as 65536, 64K or 1M")
	}
	return n, nil
}

// ParseBytes reads a number of bytes: 65536, 64K, 1m. ok is false if s is no such number.
func ParseBytes(s string) (n int64, ok bool) {
	digits, shift := s, 0
	if last := len(s) - 1; last >= 0 {
		if i := strings.IndexByte("KMG", s[last]&^0x20); i >= 0 {
			digits, shift = s[:last], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n << shift, err == nil && n >= 0 && n <= math.MaxInt64>>shift
}

// Ports returns the variable as ParsePorts reads it, and 0, 0 for any port if unset.
func Ports(name string) (lo, hi int, err error) {
	s := String(name)
	if s == "" {
		return 0, 0, nil
	}
	if lo, hi, err = ParsePorts(s); err != nil {
		return 0, 0, fmt.Errorf("%s=%w", name, err)
	}
	return lo, hi, nil
}

// ParsePorts reads a range of ports, "lo-hi", or one port.
func ParsePorts(s string) (lo, hi int, err error) {
	first, last, found := strings.Cut(s, "-")
	if !found {
		last = first
	}
	lo, err1 := strconv.Atoi(first)
	hi, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || lo < 1 || hi > 65535 || lo > hi {
		return 0, 0, fmt.Errorf("%q: want a port or a range of ports such as 20000-20999", s)
	}
	return lo, hi, nil
}

// FD returns the variable as the number of an inherited descriptor, or -1 if unset or not such a
// number.
func FD(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 0 || n > math.MaxInt32 {
		return -1
	}
	return n
}

func wrong(name, value, want string) error {
	return fmt.Errorf("%s=%q: want %s", name, value, want)
}
