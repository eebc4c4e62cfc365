package exec

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"gompi/internal/mem"
)

// While a chunk is run, those behind it are loaded and those before it stored, as far
// as there are slots; and each takes its steps in turn, in a slot of its own.
func TestChunksAreCopiedWhileOthersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const chunks = 3*pipeDepth + 1
		loads, stores := make(chan int, chunks), make(chan int, chunks)
		stored := make(chan struct{})
		at := func(want int, slot mem.Buffer, i int) error {
			if got := int(mem.Slice[uint8](slot)[0]); got != want {
				return fmt.Errorf("step of chunk %d finds %d in its slot, want %d", i, got, want)
			}
			return nil
		}
		var st Pool
		f := pipeline{space: mem.Host, chunks: chunks, slot: 100}
		f.load = func(i int, slot mem.Buffer) error {
			loads <- i
			mem.Slice[uint8](slot)[0] = uint8(i)
			return nil
		}
		f.run = func(i int, slot mem.Buffer) error {
			switch i {
			case 0: // all slots are loaded now, and none is stored
				for range pipeDepth {
					<-loads
				}
			case 3: // nothing waits for the first to be stored
				close(stored)
			}
			mem.Slice[uint8](slot)[0] += 100
			return at(i+100, slot, i)
		}
		f.store = func(i int, slot mem.Buffer) error {
			if i == 0 {
				<-stored
			}
			stores <- i
			return at(i+100, slot, i)
		}
		if err := f.do(&st); err != nil {
			t.Fatal(err)
		}
		for i := range chunks {
			if got := <-stores; got != i {
				t.Fatalf("chunk %d was stored in the place of %d", got, i)
			}
		}
		if lent := len(st.Kept()); lent != pipeDepth {
			t.Errorf("%d slots, want %d", lent, pipeDepth)
		}
	})
}

// A step that fails ends it all, and every slot comes back.
func TestChunksThatFailEndTheOthers(t *testing.T) {
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
				var st Pool
				f := pipeline{space: mem.Host, chunks: 21, slot: 100, load: do(0), run: do(1), store: do(2)}
				if err := f.do(&st); !errors.Is(err, broken) {
					t.Errorf("step %d of chunk %d: %v", step, at, err)
				}
				if lent := len(st.Kept()); lent != pipeDepth {
					t.Errorf("%d slots came back, want %d", lent, pipeDepth)
				}
			})
		}
	}
}
