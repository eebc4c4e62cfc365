package cudaops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// Collectives of processes, each of which has its buffers on a device.

// A collective has so many elements of send and recv on this rank.
type collective struct {
	name       string
	send, recv int
	call       func(ctx context.Context, c *comm.Comm, send, recv comm.Buffer) error
}

// collectives are the collectives that processes try, with n elements in a block, or vector.
func collectives(c *comm.Comm, n int) []collective {
	p, root := c.Size(), c.Size()-1
	counts := make([]int, p)
	for i := range counts {
		counts[i] = n + i
	}
	all := n*p + p*(p-1)/2
	return []collective{
		{"allreduce", n, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Allreduce(ctx, s, r, comm.Sum)
		}},
		{"allreduce in place", 0, n, func(ctx context.Context, c *comm.Comm, _, r comm.Buffer) error {
			return c.Allreduce(ctx, r, r, comm.Max)
		}},
		{"average", n, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Allreduce(ctx, s, r, comm.Avg)
		}},
		{"bcast", 0, n, func(ctx context.Context, c *comm.Comm, _, r comm.Buffer) error {
			return c.Bcast(ctx, root, r)
		}},
		{"reduce", n, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Reduce(ctx, root, s, r, comm.Sum)
		}},
		{"reducescatter", n * p, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.ReduceScatterBlock(ctx, s, r, comm.Sum)
		}},
		{"allgather", n, n * p, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Allgather(ctx, s, r)
		}},
		{"allgatherv", n + c.Rank(), all, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Allgatherv(ctx, s, r, counts, nil)
		}},
		{"gather", n, n * p, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Gather(ctx, 0, s, r)
		}},
		{"scatter", n * p, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Scatter(ctx, 0, s, r)
		}},
		{"alltoall", n * p, n * p, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Alltoall(ctx, s, r)
		}},
		{"scan", n, n, func(ctx context.Context, c *comm.Comm, s, r comm.Buffer) error {
			return c.Scan(ctx, s, r, comm.Sum)
		}},
	}
}

// jobCollectives is a rank that does each collective in host memory and on its device, and
// compares. rank1Variable is a setting for that rank alone.
func jobCollectives() error {
	ctx := context.Background()
	c, d, err := joined(ctx)
	if err != nil {
		return err
	}
	if name, value, ok := strings.Cut(os.Getenv(rank1Variable), "="); ok && c.Rank() == 1 {
		os.Setenv(name, value)
	}
	byNCCL := os.Getenv(env.CUDA) != ""
	lengths := []int{9000, 600_001} // the second is long enough for chunks
	if byNCCL {
		lengths = []int{9000, 40_001}
	}
	for _, n := range lengths {
		for _, k := range collectives(c, n) {
			if k.name == "scan" && byNCCL {
				continue // NCCL has none
			}
			if err := k.compare(ctx, c, d); err != nil {
				return c.Abort(1, fmt.Sprintf("%s of %d: %v", k.name, n, err))
			}
		}
	}
	return c.Close(ctx)
}

// rank1Variable has the form of a line of the environment.
const rank1Variable = "GOMPI_TEST_ON_RANK_1"

func (k collective) compare(ctx context.Context, c *comm.Comm, d *cudaops.Device) error {
	send, recv := make([]float32, k.send), make([]float32, k.recv)
	for i := range send {
		send[i] = float32((c.Rank()*31 + i*7) % 101)
	}
	for i := range recv {
		recv[i] = float32((c.Rank()*13 + i*3) % 103)
	}
	s, err := cudaops.Upload(d, send)
	if err != nil {
		return err
	}
	defer s.Free()
	r, err := cudaops.Upload(d, recv)
	if err != nil {
		return err
	}
	defer r.Free()
	got := make([]float32, k.recv)
	if err := errors.Join(k.call(ctx, c, comm.Of(send), comm.Of(recv)), k.call(ctx, c, s.Buffer(), r.Buffer()),
		r.CopyTo(got)); err != nil {
		return err
	}
	if !bytes.Equal(mem.Of(got).Raw().HostSlice(), mem.Of(recv).Raw().HostSlice()) {
		return errors.New("the device holds something else than host memory")
	}
	return nil
}

// Processes that share a device, have one each, or some of both, do collectives of its memory.
func TestProcessesDoCollectivesOfDeviceMemory(t *testing.T) {
	device(t)
	numbers, devices := []string{"2", "4"}, []string{"1", "3"}
	switch {
	case cudatest.Real(): // with the devices of the machine
		numbers, devices = []string{"1", "2", "4", "8"}, []string{""}
	case testing.Short():
		numbers, devices = []string{"2"}, []string{"2"}
	}
	for _, np := range numbers {
		for _, n := range devices {
			if out, err := startRanks(t, "collectives", np, "FAKECUDA_DEVICES="+n); err != nil {
				t.Errorf("np=%s, %s devices: %v\n%s", np, n, err, out)
			}
		}
	}
}

// jobDying is a rank of which the last kills itself while the others do collectives of
// device memory.
func jobDying() error {
	ctx := context.Background()
	c, d, err := joined(ctx)
	if err != nil {
		return err
	}
	v, err := cudaops.Make[float32](d, 300_000)
	if err != nil {
		return err
	}
	if c.Rank() == c.Size()-1 {
		for range 3 {
			if err := c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum); err != nil {
				return err
			}
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for err == nil {
		err = c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum)
	}
	var lost *comm.RevokedError
	if !errors.As(err, &lost) || lost.Rank != c.Size()-1 {
		return fmt.Errorf("rank %d got %v, which does not name the rank that died", c.Rank(), err)
	}
	return nil
}

// A process that is killed while others do collectives of device memory ends the job, with its
// name.
func TestAProcessThatDiesEndsCollectivesOfDeviceMemory(t *testing.T) {
	device(t)
	out, err := startRanks(t, "dying", "4")
	if err == nil || !strings.Contains(out, "rank 3") || !strings.Contains(out, "killed") ||
		strings.Contains(out, "does not name") {
		t.Errorf("%v\n%s", err, out)
	}
}
