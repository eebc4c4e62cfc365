package link

import (
	"fmt"
	"slices"
	"testing"

	"gompi/hostfile"
)

func TestShape(t *testing.T) {
	remote := func(h hostfile.Host) bool { return h.Name != "here" }
	hosts := func(n int) (list []hostfile.Host) {
		for i := range n {
			list = append(list, hostfile.Host{Name: fmt.Sprint(i)})
		}
		return list
	}
	for n, want := range map[int][]int{
		2: {-1, -1}, 3: {-1, 0, -1}, 6: {-1, 0, 0, -1, 3, 3}, 7: {-1, 0, 1, 0, -1, 4, 4},
	} {
		if got := shape(hosts(n), 2, remote); !slices.Equal(got, want) {
			t.Errorf("%d hosts, two from each: %v, want %v", n, got, want)
		}
	}
	mixed := hosts(4)
	mixed[1].Name = "here"
	if got := shape(mixed, 2, remote); !slices.Equal(got, []int{-1, -1, 0, -1}) {
		t.Errorf("with this one: %v", got)
	}
	for _, tt := range []struct{ n, fanout, most, depth int }{
		{64, 64, 64, 1}, {65, 64, 8, 2}, {128, 64, 11, 2}, {1000, 64, 32, 2}, {4096, 64, 64, 2}, {5000, 64, 17, 3},
		{1000, 0, 1000, 1}, {5, 1, 1, 5},
	} {
		from := shape(hosts(tt.n), tt.fanout, remote)
		starts, most, deepest := map[int]int{}, 0, 0
		for h, f := range from {
			starts[f]++
			most = max(most, starts[f])
			depth := 1
			for ; f != launcher; f = from[f] {
				if f >= h {
					t.Fatalf("%+v: host %d is below %d, which follows it", tt, h, f)
				}
				depth++
			}
			deepest = max(deepest, depth)
		}
		if most != tt.most || deepest != tt.depth {
			t.Errorf("%+v: up to %d hosts from one, %d deep", tt, most, deepest)
		}
	}
}
