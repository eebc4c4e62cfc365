package cli

import (
	"testing"
	"time"
)

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
