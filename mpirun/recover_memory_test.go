//go:build linux

package mpirun

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/comm"
)

// hoardWords is how much each rank of hoardMain has from Alloc, in words: more than all else that
// it shares.
const hoardWords = 2 << 20

// hoardMain is a rank that has much memory in its heap, and whose dead are replaced, until the file
// that its argument names is there.
func hoardMain() {
	if err := hoard(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func hoard(ctx context.Context, gate string) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	for {
		err := hoardOnce(ctx, c, gate)
		if err == nil {
			return c.Close(ctx)
		}
		if !errors.Is(err, comm.ErrRevoked) && !errors.Is(err, comm.ErrLeft) {
			return err
		}
		next, err := c.Restore(ctx)
		if err != nil {
			return err
		}
		if err := c.Close(ctx); err != nil {
			return err
		}
		c = next
	}
}

// hoardOnce sums a vector in place, and sends it around, again and again.
func hoardOnce(ctx context.Context, c *comm.Comm, gate string) error {
	heap, err := comm.Alloc[int64](ctx, c, hoardWords)
	if err != nil {
		return err
	}
	fmt.Printf("rank %d is process %d\n", c.Rank(), os.Getpid())
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	private := make([]int64, 1<<20)
	for step := int64(1); ; step++ {
		open := []int64{0}
		if _, err := os.Stat(gate); err == nil && c.Rank() == 0 {
			open[0] = 1
		}
		if err := comm.Bcast(ctx, c, 0, open); err != nil || open[0] != 0 {
			return errors.Join(err, comm.Barrier(ctx, c))
		}
		small, err := comm.Alloc[int64](ctx, c, 1) // which frees the memory of closed Comms
		if err != nil {
			return err
		}
		if err := comm.Free(ctx, c, small); err != nil {
			return err
		}
		for i := range heap {
			heap[i] = step
		}
		if err := comm.Allreduce(ctx, c, heap, heap, comm.Sum); err != nil {
			return err
		}
		if _, err := comm.Sendrecv(ctx, c, next, 1, heap[:len(private)], last, 1, private); err != nil {
			return err
		}
		if want := step * int64(c.Size()); heap[hoardWords-1] != want || private[len(private)-1] != want {
			return fmt.Errorf("step %d: got %d and %d, want %d", step, heap[hoardWords-1],
				private[len(private)-1], want)
		}
	}
}

// sharedMemory returns how many bytes of the host's segment exist, as a rank's process has it.
func sharedMemory(t *testing.T, pid int) int64 {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/memfd:gompi") {
			continue
		}
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Sys().(*syscall.Stat_t).Blocks * 512
	}
	t.Fatalf("process %d has no segment", pid)
	return 0
}

// TestTheMemoryOfDeadRanksIsFreed kills ranks one after the other, each of which is replaced.
// Each replacement takes memory for its heap, and as much is freed. Readers of freed memory get
// an error, not zeros.
func TestTheMemoryOfDeadRanksIsFreed(t *testing.T) {
	const np, deaths = 3, 6
	const most = np*hoardWords*8 + 8<<20 // the heaps, and less than one for all else
	gate := filepath.Join(t.TempDir(), "gate")
	cmd := exec.Command("gompirun", "-recover", "-spares", fmt.Sprint(deaths), "-timeout", "100", "-np", fmt.Sprint(np),
		"hoard", gate)
	var output strings.Builder
	cmd.Stderr = &output
	lines := started(t, cmd)
	pids := processes(t, lines, np)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range deaths {
		victim := n % np
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // any moment will do: others read its memory
		syscall.Kill(pids[victim], syscall.SIGKILL)
		pids = processes(t, lines, np) // as each takes its memory in the new communicator
		has := sharedMemory(t, pids[victim])
		for end := time.Now().Add(soon); has > most && time.Now().Before(end); has = sharedMemory(t, pids[victim]) {
			time.Sleep(time.Millisecond) // there is no event for memory that is freed
		}
		if has > most {
			t.Errorf("after %d deaths: %d bytes of shared memory, want %d at most", n+1, has, most)
			break
		}
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := lines.ReadString('\n'); err == nil; _, err = lines.ReadString('\n') {
	}
	if err := cmd.Wait(); err != nil || !t.Failed() &&
		strings.Count(output.String(), "the job continues without it") != deaths {
		t.Errorf("gompirun: %v, want %d deaths:\n%s", err, deaths, output.String())
	}
}
