package cli

import (
	"math"
	"slices"
	"testing"
	"time"
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
		if got, err := ParseSize(tt.in); err != nil || got != tt.want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", tt.in, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "K", "-1", "1.5K", "1X", "1KK", "1KiBB", "i", "1i", "1 K", "9999999T",
		"99999999999999999999"} {
		got, err := ParseSize(bad)
		if want := `size "` + bad + `": want bytes, as 8, 64K, 1M or 2G`; err == nil || err.Error() != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %s", bad, got, err, want)
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
		got := FormatSize(tt.n)
		if got != tt.want {
			t.Errorf("FormatSize(%d) = %q, want %q", tt.n, got, tt.want)
		}
		if back, err := ParseSize(got); err != nil || back != tt.n {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", got, back, err, tt.n)
		}
	}
}

func TestSizesReplaceTheDefault(t *testing.T) {
	s := New("bench")
	sizes := Sizes{8, 1024}
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

func TestDurationTakesPlainSeconds(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
	}{
		{"0", 0}, {"2", 2 * time.Second}, {"0.5", 500 * time.Millisecond}, {"90s", 90 * time.Second},
		{"1h30m", 90 * time.Minute}, {"20ms", 20 * time.Millisecond},
	}
	for _, tt := range tests {
		var d Duration
		if err := d.Set(tt.in); err != nil || time.Duration(d) != tt.want {
			t.Errorf("Set(%q): %v, %v; want %v", tt.in, time.Duration(d), err, tt.want)
		}
	}
	for _, bad := range []string{"", "soon", "-1", "-2s", "NaN", "1e300", "Inf", "-Inf", "2 s"} {
		d := Duration(7)
		if err := d.Set(bad); err == nil || d != 7 {
			t.Errorf("Set(%q): %v, %v; want an error and no change", bad, time.Duration(d), err)
		}
	}
}

func TestSizeIsOneSize(t *testing.T) {
	s := New("bench")
	z := Size(64 << 10)
	s.Var(&z, "min", "smallest message")
	if _, err := s.Parse([]string{"-min", "2M"}); err != nil || z != 2<<20 || z.String() != "2M" {
		t.Errorf("-min 2M: %v, %v", z, err)
	}
}
