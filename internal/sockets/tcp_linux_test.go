//go:build linux && !gompi_portable

package sockets

import "testing"

func TestUnanswered(t *testing.T) {
	for _, tc := range []struct {
		retransmits, probes uint8
		sinceAck            uint32
		want                bool
	}{
		{0, 0, 100_000, false}, // idle: keepalive's business
		{0, 1, 100_000, false}, // one probe on its way to a rank that computes
		{1, 0, 40_000, false},  // one lost packet
		{5, 0, 10_000, false},  // not for long
		{2, 0, silentMillis, true},
		{0, 2, silentMillis, true},
	} {
		if got := unanswered(tc.retransmits, tc.probes, tc.sinceAck); got != tc.want {
			t.Errorf("unanswered(%d, %d, %d) = %v, want %v", tc.retransmits, tc.probes, tc.sinceAck, got, tc.want)
		}
	}
}
