package memtest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// An event is done when the work before it is.
func TestWorkOfAStreamIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memtest.NewDevice("gpu").OpenStream()
		var order []string
		put := func(what string) { q.Do(func() error { order = append(order, what); return nil }) }
		m, err := q.NewEvent()
		if err != nil {
			t.Fatal(err)
		}
		if done, err := m.Done(); !done || err != nil {
			t.Errorf("an event that was never set: %v, %v", done, err)
		}
		gate := make(chan struct{})
		put("before the gate")
		q.Do(func() error { <-gate; return nil })
		put("behind it")
		if err := m.Set(); err != nil {
			t.Fatal(err)
		}
		put("after the event")
		synctest.Wait()
		if done, _ := m.Done(); done || !slices.Equal(order, []string{"before the gate"}) {
			t.Errorf("at the gate the event is done %v, and %q", done, order)
		}
		close(gate)
		if err := errors.Join(m.Wait(), q.Sync(), m.Close()); err != nil {
			t.Error(err)
		}
		if want := []string{"before the gate", "behind it", "after the event"}; !slices.Equal(order, want) {
			t.Errorf("the order was %q", order)
		}
		wrong := errors.New("wrong")
		q.Do(func() error { return wrong })
		if err := q.Close(); !errors.Is(err, wrong) {
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
	if err := errors.Join(q.Copy(b, mem.Of(got)), q.Sync()); err != nil {
		t.Fatal(err)
	}
	clear(got)
	if err := errors.Join(q.Copy(mem.Of(got), b), q.Clear(b), q.Sync()); err != nil ||
		!slices.Equal(got, []float32{2, 4, 6}) {
		t.Errorf("got %v (%v)", got, err)
	}
	if err := errors.Join(q.Copy(mem.Of(got), b), q.Close()); err != nil || !slices.Equal(got, []float32{0, 0, 0}) {
		t.Errorf("after Clear: %v, %v", got, err)
	}
}
