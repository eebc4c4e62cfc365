package main

import (
	"math"
	"slices"
	"testing"

	"gompi/internal/cli"
)

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"0", 0}, {"8", 8}, {"8B", 8}, {"1K", 1 << 10}, {"1k", 1 << 10}, {"1KB", 1 << 10}, {"1KiB", 1 << 10},
		{"1Ki", 1 << 10},
		{"64M", 64 << 20}, {"2g", 2 << 30}, {"1T", 1 << 40}, {"1536", 1536},
	}
	for _, tt := range tests {
		if got, err := parseSize(tt.in); err != nil || got != tt.want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", tt.in, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "K", "-1", "1.5K", "1X", "1KK", "1KiBB", "i", "1i", "1 K", "9999999T",
		"99999999999999999999"} {
		got, err := parseSize(bad)
		if want := `size "` + bad + `": want bytes, as 8, 64K, 1M or 2G`; err == nil || err.Error() != want {
			t.Errorf("parseSize(%q) = %d, %v; want %s", bad, got, err, want)
		}
	}
}

func TestFormatSizeReadsBack(t *testing.T) {
	tests := []struct {
		n    int
		want string
	}{{0, "0"}, {8, "8"}, {1023, "1023"}, {1024, "1K"}, {1536, "1536"}, {3 << 20, "3M"}, {1 << 50, "1024T"},
		{math.MaxInt, "9223372036854775807"}}
	for _, tt := range tests {
		got := formatSize(tt.n)
		if got != tt.want {
			t.Errorf("formatSize(%d) = %q, want %q", tt.n, got, tt.want)
		}
		if back, err := parseSize(got); err != nil || back != tt.n {
			t.Errorf("parseSize(%q) = %d, %v; want %d", got, back, err, tt.n)
		}
	}
}

func TestSizesReplaceTheDefault(t *testing.T) {
	s := cli.New("bench")
	sizes := sizeList{8, 1024}
	s.Var(&sizes, "sizes", "message sizes")
	if got := s.Lookup("sizes").DefValue; got != "8,1K" {
		t.Errorf("the default is shown as %q, want 8,1K", got)
	}
	if _, err := s.Parse([]string{"-sizes", "8,1K,1M"}); err != nil ||
		!slices.Equal(sizes, []int{8, 1 << 10, 1 << 20}) {
		t.Errorf("-sizes 8,1K,1M: %v, %v", sizes, err)
	}
	_, err := s.Parse([]string{"-sizes", "8,,1K"})
	if want := `-sizes "8,,1K": size "": want bytes, as 8, 64K, 1M or 2G`; err == nil || err.Error() != want {
		t.Errorf("-sizes 8,,1K: %v; want %s", err, want)
	}
}

func TestSizeIsOneSize(t *testing.T) {
	s := cli.New("bench")
	z := byteSize(64 << 10)
	s.Var(&z, "min", "smallest message")
	if _, err := s.Parse([]string{"-min", "2M"}); err != nil || z != 2<<20 || z.String() != "2M" {
		t.Errorf("-min 2M: %v, %v", z, err)
	}
}
