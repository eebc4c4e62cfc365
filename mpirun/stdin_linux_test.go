package mpirun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gompi/mpirun/internal/stdio"
)

// The thread that reads the input outlives it. If the thread had started agents, Linux would take
// its end for the end of their parent, and continue stopped agents.
func TestTheThreadThatReadsTheInputOutlivesIt(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	input := newInputSource(stdio.File{File: r}).read()
	fmt.Fprint(w, "data")
	if data := <-input; string(data.Data) != "data" {
		t.Errorf("read %q", data)
	}
	readers := threadsThatBlock(t, syscall.SIGTTIN)
	if len(readers) != 1 {
		t.Fatalf("threads that block SIGTTIN: %q, want one that reads", readers)
	}
	w.Close()
	if data, ok := <-input; ok {
		t.Fatalf("read %q after the end", data)
	}
	if _, err := os.Stat(readers[0]); err != nil {
		t.Errorf("the thread has ended: %v", err)
	}
	if readers := threadsThatBlock(t, syscall.SIGTTIN); readers != nil {
		t.Errorf("threads that block SIGTTIN for good: %q", readers)
	}
}

// threadsThatBlock returns the folders in /proc of this process's threads that block sig alone: one
// that starts a thread blocks all for a moment.
func threadsThatBlock(t *testing.T, sig syscall.Signal) (found []string) {
	threads, err := filepath.Glob("/proc/self/task/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		status, _ := os.ReadFile(thread + "/status") // it may have ended
		_, line, _ := strings.Cut(string(status), "SigBlk:")
		var blocked uint64
		fmt.Sscanf(line, "%x", &blocked)
		if blocked == 1<<(sig-1) {
			found = append(found, thread)
		}
	}
	return found
}
