package exec

import (
	"errors"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// What one stage is lent no other has: also when a device failed in between, on
// the way there or back.
func TestMemoryOfStagesIsLentOnce(t *testing.T) {
	gpu := memtest.NewDevice("gpu")
	alloc := func() mem.Buffer {
		b, err := gpu.Alloc(mem.I32, 100)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	lost := alloc()
	gpu.Free(lost)
	x := &Exec{Staging: new(Pool)}
	for _, bad := range [][2]mem.Buffer{{lost, alloc()}, {alloc(), lost}, {lost, lost}} {
		on := *new(call.Call).Allreduce(bad[0], bad[1], call.Op{Kind: mem.Sum})
		stages, err := x.operands(&on, calls.Updated)
		if err == nil {
			t.Fatal("memory that is gone was copied")
		}
		x.Staging.End(stages[0])
		x.Staging.End(stages[1])
	}
	seen := map[uintptr]bool{}
	for range 10 {
		s, err := x.Staging.Load(alloc())
		if err = errors.Join(err, s.Store(s.Of.Size())); err != nil {
			t.Fatal(err)
		}
		if seen[s.Host.Addr()] {
			t.Fatalf("memory at %#x is lent twice", s.Host.Addr())
		}
		seen[s.Host.Addr()] = true
	}
}
