package stall

import (
	"os/exec"
	"testing"
)

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
		if pid, ok := worker(shell.Process.Pid); !ok {
			t.Fatalf("look %d: process %d is taken for a gompi program", i, pid)
		}
	}
}
