package shmsync_test

import (
	"testing"
	"time"

	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
)

const large = 512 << 10

// What waits for members to leave may use the Pool, as what it calls on a device may.
func TestWhatWaitsForMembersIsDoneWithNoLockHeld(t *testing.T) {
	for name, vacate := range map[string]func(p *shmsync.Pool){
		"sweep": (*shmsync.Pool).Sweep, "take": func(p *shmsync.Pool) { p.Take() }} {
		t.Run(name, func(t *testing.T) {
			p := shmsynctest.NewHost(1, large).Pools[0]
			token, err := p.Take()
			if err != nil {
				t.Fatal(err)
			}
			used := make(chan struct{})
			p.WhenVacant(token, func() {
				defer close(used)
				p.Sweep()
			})
			p.Give(token)
			go vacate(p)
			select {
			case <-used:
			case <-time.After(10 * time.Second):
				t.Error("the Pool is locked while it is done")
			}
		})
	}
}

func TestBlocksServeAgainWhenAllHaveLeft(t *testing.T) {
	h := shmsynctest.NewHost(2, large)
	a, b := h.Pools[0], h.Pools[1]
	ta, _ := a.Take()
	tb, _ := b.Take()
	h.Team(0, []shmsync.Token{ta, tb}, shmsync.Gate{}, func(int) {})
	a.Give(ta)
	if other, _ := a.Take(); other.Place() == ta.Place() {
		t.Error("a block served again while another member was in its Team")
	}
	b.Give(tb)
	again, err := a.Take()
	if err != nil || again.Place() != ta.Place() || again == ta {
		t.Errorf("place %d after %v, want %d anew", again.Place(), err, ta.Place())
	}
	if _, err = a.Take(); err != nil {
		t.Fatal(err)
	}
	if tok, err := a.Take(); err == nil {
		t.Errorf("took %v where there is no memory", tok)
	}
}
