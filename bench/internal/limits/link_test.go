package limits

import (
	"math"
	"testing"
)

func TestALinkCarriesWhatOtherHostsNeed(t *testing.T) {
	gigabit := Link{Rate: 125e6, Hosts: 4, Ranks: 2}
	const mib = 1 << 20
	for _, tt := range []struct {
		op    string
		link  Link
		bytes int
		want  float64 // us; 0 if nothing can be said
	}{
		{"allreduce", gigabit, 64 * mib, 805306},
		{"bcast", gigabit, 8 * mib, 67109},
		{"allgather", gigabit, mib, 50332},
		{"reducescatter", gigabit, mib, 50332},
		{"alltoall", gigabit, mib, 100663},
		{"allreduce", Link{Rate: 125e6, Hosts: 4, Ranks: 2, Burst: mib / 2}, mib, 12583},
		{"allreduce", Link{Rate: 125e6, Hosts: 4, Ranks: 2, Burst: mib / 2}, 8, 0},
		{"allreduce", Link{Rate: 125e6, Hosts: 1, Ranks: 2}, mib, 0},
		{"barrier", gigabit, 0, 0},
		{"latency", gigabit, mib, 0},
	} {
		us, ok := tt.link.Time(tt.op, tt.bytes)
		if math.Abs(us-tt.want) > 1 || ok != (tt.want > 0) {
			t.Errorf("%s of %d bytes over %+v: %.0f us, %v; want %.0f", tt.op, tt.bytes, tt.link, us, ok, tt.want)
		}
	}
}
