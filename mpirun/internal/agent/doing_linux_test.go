package agent

import (
	"os/exec"
	"testing"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

func TestAReplacementOfAReplacementIsKnownByTheFirst(t *testing.T) {
	var s originals
	s.learn([]wire.Replacement{{Dead: 1, By: 4}})
	s.learn([]wire.Replacement{{Dead: 4, By: 6}, {Dead: 0, By: 5}})
	for rank, want := range map[world.Rank]world.Rank{0: 0, 3: 3, 4: 1, 5: 0, 6: 1, -1: -1} {
		if got := s.named(rank); got != want {
			t.Errorf("rank %d is known by %d, want %d", rank, got, want)
		}
	}
}

// A shell's children end during a look: then their successors are looked at.
func TestChildrenThatEndMeanwhileAreNotTheWorker(t *testing.T) {
	shell := exec.Command("sh", "-c", "while :; do /bin/true; done")
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		shell.Process.Kill()
		shell.Wait()
	}()
	for i := range 500 {
		if pid, ok := nonGompiWorker(shell.Process.Pid); !ok {
			t.Fatalf("look %d: process %d is taken for a gompi program", i, pid)
		}
	}
}
