package exec

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/comm/internal/staging"
	"gompi/internal/mem"
)

// While a piece is run, those behind it are loaded and those before it stored, as far
// as there are rooms; and each takes its steps in turn, in a room of its own.
func TestPiecesAreCopiedWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 3*pipeDepth + 1
		loads, stores := make(chan int, pieces), make(chan int, pieces)
		stored := make(chan struct{})
		at := func(want int, room mem.Buffer, i int) error {
			if got := int(mem.Slice[uint8](room)[0]); got != want {
				return fmt.Errorf("step of piece %d finds %d in its room, want %d", i, got, want)
			}
			return nil
		}
		var st staging.Pool
		f := flow{space: mem.Host, pieces: pieces, room: 100}
		f.load = func(i int, room mem.Buffer) error {
			loads <- i
			mem.Slice[uint8](room)[0] = uint8(i)
			return nil
		}
		f.run = func(i int, room mem.Buffer) error {
			switch i {
			case 0: // all rooms are loaded now, and none is stored
				for range pipeDepth {
					<-loads
				}
			case 3: // nothing waits for the first to be stored
				close(stored)
			}
			mem.Slice[uint8](room)[0] += 100
			return at(i+100, room, i)
		}
		f.store = func(i int, room mem.Buffer) error {
			if i == 0 {
				<-stored
			}
			stores <- i
			return at(i+100, room, i)
		}
		if err := f.do(&st); err != nil {
			t.Fatal(err)
		}
		for i := range pieces {
			if got := <-stores; got != i {
				t.Fatalf("piece %d was stored in the place of %d", got, i)
			}
		}
		if lent := len(st.Kept()); lent != pipeDepth {
			t.Errorf("%d rooms, want %d", lent, pipeDepth)
		}
	})
}

// A step that fails ends it all, and every room comes back.
func TestPiecesThatFailEndTheOthers(t *testing.T) {
	for step := range 3 {
		for _, at := range []int{0, 5, 20} {
			synctest.Test(t, func(t *testing.T) {
				broken := errors.New("broken")
				do := func(this int) func(int, mem.Buffer) error {
					return func(i int, _ mem.Buffer) error {
						if step == this && i == at {
							return broken
						}
						return nil
					}
				}
				var st staging.Pool
				f := flow{space: mem.Host, pieces: 21, room: 100, load: do(0), run: do(1), store: do(2)}
				if err := f.do(&st); !errors.Is(err, broken) {
					t.Errorf("step %d of piece %d: %v", step, at, err)
				}
				if lent := len(st.Kept()); lent != pipeDepth {
					t.Errorf("%d rooms came back, want %d", lent, pipeDepth)
				}
			})
		}
	}
}
