package node

import (
	"testing"
	"time"
)

// What waits for members to leave may use the Pool, as what it calls on a device may.
func TestWhatWaitsForMembersIsDoneWithNoLockHeld(t *testing.T) {
	for name, vacate := range map[string]func(p *Pool){"sweep": (*Pool).Sweep, "take": func(p *Pool) { p.Take() }} {
		t.Run(name, func(t *testing.T) {
			p := newHouse(1).pools[0]
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
