package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A byteSize is a number of bytes: 8, 64K, 1M or 2G, where K is 1024 bytes.
type byteSize int

// Set implements pflag.Value.
func (z *byteSize) Set(s string) error {
	n, err := parseSize(s)
	if err == nil {
		*z = byteSize(n)
	}
	return err
}

// String implements pflag.Value.
func (z *byteSize) String() string { return formatSize(int(*z)) }

// Type names the value in usage texts.
func (z *byteSize) Type() string { return "size" }

// A sizeList is a list of sizes separated by commas. Setting it replaces the old list.
type sizeList []int

// Set implements pflag.Value.
func (z *sizeList) Set(s string) error {
	var sizes []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := parseSize(part)
		if err != nil {
			return err
		}
		sizes = append(sizes, n)
	}
	*z = sizes
	return nil
}

// String implements pflag.Value.
func (z *sizeList) String() string {
	parts := make([]string, len(*z))
	for i, n := range *z {
		parts[i] = formatSize(n)
	}
	return strings.Join(parts, ",")
}

// Type names the value in usage texts.
func (z *sizeList) Type() string { return "sizes" }

// unitLetters stand for 1024, 1024 squared and so on.
const unitLetters = "KMGT"

// parseSize reads a number of bytes, 0 or more: digits, optionally K, M, G or T, each 1024 times
// the one before, in either case, then optionally B or iB.
func parseSize(s string) (int, error) {
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

// formatSize writes n bytes with the largest unit that divides it: 1536 is 1536, 2048 is 2K.
func formatSize(n int) string {
	unit := ""
	for i := 0; i < len(unitLetters) && n != 0 && n%1024 == 0; i++ {
		n, unit = n/1024, unitLetters[i:i+1]
	}
	return strconv.Itoa(n) + unit
}
