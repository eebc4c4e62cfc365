package memtest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// One stream waits for a point of the other, which stops at a hold.
func TestWorkOfStreamsIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memtest.NewDevice("gpu")
		one, two := d.OpenStream(), d.OpenStream()
		var order []string
		put := func(q *memtest.Stream, what string) {
			q.Do(func() error { order = append(order, what); return nil })
		}
		m, err := one.NewEvent()
		if err != nil {
			t.Fatal(err)
		}
		if done, err := m.Done(); !done || err != nil {
			t.Errorf("an event that was never set: %v, %v", done, err)
		}
		put(one, "before the hold")
		h, err := one.Hold()
		if err != nil {
			t.Fatal(err)
		}
		put(one, "behind it")
		if err := errors.Join(m.Set(), two.After(m), h.Reached()); err != nil {
			t.Fatal(err)
		}
		put(two, "after the event")
		synctest.Wait()
		if done, _ := m.Done(); done || !slices.Equal(order, []string{"before the hold"}) {
			t.Errorf("at the hold the event is done %v, and %q", done, order)
		}
		h.Release()
		if err := errors.Join(two.Sync(), m.Wait()); err != nil {
			t.Error(err)
		}
		if want := []string{"before the hold", "behind it", "after the event"}; !slices.Equal(order, want) {
			t.Errorf("the order was %q", order)
		}
		wrong := errors.New("wrong")
		one.Do(func() error { return wrong })
		if err := errors.Join(two.Close(), m.Close()); err != nil {
			t.Error(err)
		}
		if err := one.Close(); !errors.Is(err, wrong) {
			t.Errorf("Close returned %v", err)
		}
	})
}

func TestStreamDoesWhatItsDeviceDoes(t *testing.T) {
	d := memtest.NewDevice("gpu")
	q := d.OpenStream()
	b, err := d.Alloc(mem.F32, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Free(b)
	got := []float32{2, 4, 6}
	if err := errors.Join(q.Copy(b, mem.Of(got)), q.Reduce(mem.Sum, b, b, b, b), q.Divide(b, 2), q.Copy(mem.Of(got), b), q.Clear(b), q.Sync()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []float32{3, 6, 9}) {
		t.Errorf("got %v", got)
	}
	if err := errors.Join(q.Copy(mem.Of(got), b), q.Close()); err != nil || !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("after Clear: %v, %v", got, err)
	}
}
