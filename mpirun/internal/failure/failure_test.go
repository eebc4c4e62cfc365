package failure

import (
	"testing"
	"time"
)

func TestFailuresOfTwoHostsAreComparedWithDoubt(t *testing.T) {
	a, b := &Clock{round: 4 * time.Millisecond}, &Clock{round: 6 * time.Millisecond}
	at := func(k *Clock, ms int) *Cause {
		return &Cause{Time: int64(time.Duration(ms+1000) * time.Millisecond), Clock: k}
	}
	missed := func(k *Clock, ms, asked int) *Cause {
		c := at(k, ms)
		c.Asked = at(k, asked).Time
		return c
	}
	tests := []struct {
		c, d *Cause
		want bool
	}{
		{at(a, 1), at(a, 2), true},
		{at(a, 2), at(a, 1), false},
		{at(b, 1), at(a, 5), false}, // the clocks are known within 5 ms
		{at(b, 1), at(a, 7), true},
		{&Cause{Clock: a}, at(a, 1), false}, // no rank's doing
		{at(a, 1), &Cause{}, false},
		{missed(b, 700, 0), at(a, 510), true}, // told late
		{at(a, 510), missed(b, 700, 0), false},
		{missed(a, 700, 0), at(a, 510), false},     // one clock has both
		{missed(b, 700, 520), at(a, 510), false},   // asked about when the other had failed
		{missed(b, 20700, 0), at(a, 20510), false}, // long before
		{missed(b, 700, 0), missed(a, 510, 0), false},
	}
	for i, tt := range tests {
		if got := tt.c.Before(tt.d); got != tt.want {
			t.Errorf("%d: before is %v, want %v", i, got, tt.want)
		}
	}
}
