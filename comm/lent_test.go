package comm

import (
	"errors"
	"testing"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// What one stage is lent no other has: also when a device failed in between, on
// the way there or back.
func TestMemoryOfStagesIsLentOnce(t *testing.T) {
	gpu := memtest.NewDevice("gpu")
	alloc := func() Buffer {
		b, err := gpu.Alloc(mem.I32, 100)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	lost := alloc()
	gpu.Free(lost)
	c := &Comm{process: &process{}}
	for _, bad := range [][2]Buffer{{lost, alloc()}, {alloc(), lost}, {lost, lost}} {
		on := *new(call.Call).Allreduce(bad[0], bad[1], call.Op{Kind: mem.Sum})
		stages, err := c.staging.operands(&on, call.Updated)
		if err == nil {
			t.Fatal("memory that is gone was copied")
		}
		c.staging.end(stages[0])
		c.staging.end(stages[1])
	}
	seen := map[uintptr]bool{}
	for range 10 {
		s, err := c.staging.load(alloc())
		if err = errors.Join(err, s.store(s.of.Size())); err != nil {
			t.Fatal(err)
		}
		if seen[s.host.Addr()] {
			t.Fatalf("memory at %#x is lent twice", s.host.Addr())
		}
		seen[s.host.Addr()] = true
	}
}
