package fifo

import (
	"slices"
	"testing"
)

// A Queue behaves like a plain slice, at every length and place in its array.
func TestQueueKeepsTheOrder(t *testing.T) {
	var q Queue[*int]
	var want []*int
	check := func() {
		t.Helper()
		var front *int
		if len(want) > 0 {
			front = want[0]
		}
		if q.Len() != len(want) || q.Empty() != (len(want) == 0) || q.Front() != front ||
			!slices.Equal(q.Items(), want) {
			t.Fatalf("%d items, front %p: want %d, %p, and %v for %v", q.Len(), q.Front(), len(want), front,
				want, q.Items())
		}
		for i, v := range q.items[:cap(q.items)] {
			if queued := i >= q.head && i < len(q.items); v != nil && !queued {
				t.Fatalf("place %d of %d keeps what is queued no more", i, cap(q.items))
			}
		}
	}
	for pushes := range 16 {
		for pops := range pushes + 2 {
			for range pushes {
				v := new(int)
				if want = append(want, v); *q.Push(v) != v {
					t.Fatal("Push returned where another item lies")
				}
				check()
			}
			for range pops {
				var front *int
				if len(want) > 0 {
					front, want = want[0], want[1:]
				}
				if v := q.Pop(); v != front {
					t.Fatalf("popped %p, want %p", v, front)
				}
				check()
			}
		}
		for !q.Empty() {
			q.Pop()
		}
		want = nil
	}
}

// A queue that stays as long as it is allocates nothing, and its array is not much longer.
func TestQueueAllocatesNothingInTheSteadyState(t *testing.T) {
	for _, n := range []int{0, 1, 5, 100} {
		var q Queue[[3]uint64]
		for range n {
			q.Push([3]uint64{})
		}
		step := func() {
			q.Push([3]uint64{})
			q.Pop()
		}
		for range 10 * (n + 1) {
			step()
		}
		if allocs := testing.AllocsPerRun(1000, step); allocs != 0 || cap(q.items) > 4*(n+1)+4 {
			t.Errorf("%d items: %v allocations a step, an array of %d", n, allocs, cap(q.items))
		}
	}
}
