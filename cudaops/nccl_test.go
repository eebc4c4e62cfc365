package cudaops_test

import (
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

const byNCCL = env.CUDA + "=nccl"

// Processes that have a device each do collectives by NCCL: on the doubles nothing else
// could, without pinned memory to go through.
func TestProcessesDoCollectivesByNCCL(t *testing.T) {
	d := device(t)
	most := 4
	if cudatest.Real() {
		devices, err := cudaops.Devices()
		must(t, err)
		if _, err := d.Library(); err != nil || len(devices) < 2 {
			t.Skipf("%d devices (%v): want NCCL and two at least", len(devices), err)
		}
		most = len(devices)
	}
	for np := 2; np <= most; np *= 2 { // averages of floats are exact then
		out, err := startRanks(t, "collectives", fmt.Sprint(np), byNCCL, "FAKECUDA_DEVICES=4",
			"FAKECUDA_FAIL=cuMemAllocHost_v2:1=2")
		if err != nil || strings.Contains(out, "without NCCL") {
			t.Errorf("np=%d: %v\n%s", np, err, out)
		}
	}
}

// Where NCCL cannot serve, one line says why, and everything goes the usual way.
func TestWithoutNCCLOneLineSaysWhy(t *testing.T) {
	cudatest.NeedFake(t)
	for says, environment := range map[string][]string{
		"rank 0 (host localhost): no NCCL: /nowhere/libnccl.so: cannot open shared object file": {env.LibNCCL +
			"=/nowhere/libnccl.so"},
		"is NCCL 2.6.4: want 2.14 or newer": {"FAKENCCL_VERSION=2604"},
		"rank 1 (host localhost) has NCCL 2.20.5, and rank 0 another": {rank1Variable +
			"=FAKENCCL_VERSION=22005"},
		"rank 1 (host localhost): no NCCL: libother.so": {rank1Variable + "=" + env.LibNCCL +
			"=libother.so"},
		"ranks 0 and 2 (host localhost) have one device: want one for each":     {"FAKECUDA_DEVICES=2"},
		"NCCL: ncclGetUniqueId: ncclSystemError (2): unhandled system error: t": {"FAKECUDA_FAIL=ncclGetUniqueId:1=2"},
	} {
		out, err := startRanks(t, "collectives", "3", append([]string{byNCCL, "FAKECUDA_DEVICES=3"}, environment...)...)
		if err != nil || strings.Count(out, "do without NCCL") != 1 || !strings.Contains(out, says) {
			t.Errorf("%v: %v\n%s\nwant once %q", environment, err, out, says)
		}
	}
	out, err := startRanks(t, "rank", "2", env.CUDA+"=rccl")
	if err == nil || !strings.Contains(out, `GOMPI_CUDA="rccl": want nccl`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// jobNCCLDying is a rank of which one kills itself when it is inside NCCL, with the
// others.
func jobNCCLDying() error {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	d, err := cudaops.Open(c.Rank())
	if err != nil {
		return err
	}
	v, err := cudaops.Make[float32](d, 300_000)
	if err != nil {
		return err
	}
	victim := 0
	fmt.Sscan(os.Getenv(victimVariable), &victim)
	if c.Rank() == victim {
		started, starts, err := os.Pipe()
		if err != nil {
			return err
		}
		os.Setenv("FAKENCCL_HANG", "3")
		os.Setenv("FAKENCCL_TOLD", fmt.Sprint(starts.Fd()))
		go func() {
			started.Read(make([]byte, 1))
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}()
	}
	for err == nil {
		err = c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum)
	}
	var lost *comm.RevokedError
	if !errors.As(err, &lost) || lost.Rank != victim {
		return fmt.Errorf("rank %d got %v, which does not name the rank that died", c.Rank(), err)
	}
	return nil
}

const victimVariable = "GOMPI_TEST_VICTIM"

// A process that is killed inside NCCL ends the job, with its name: whether NCCL notices
// nothing, or tells the others before the launcher does.
func TestAProcessThatDiesInNCCLEndsTheJob(t *testing.T) {
	cudatest.NeedFake(t)
	for victim, notice := range []string{"1", "0", "0"} {
		out, err := startRanks(t, "ncclDying", "3", byNCCL, "FAKECUDA_DEVICES=3", "FAKENCCL_NOTICE="+notice,
			fmt.Sprintf("%s=%d", victimVariable, victim))
		if err == nil || !strings.Contains(out, fmt.Sprintf("rank %d", victim)) || !strings.Contains(out, "killed") ||
			strings.Contains(out, "does not name") {
			t.Errorf("victim %d: %v\n%s", victim, err, out)
		}
	}
}

// jobNCCL is alone with a device, and asks for operations that NCCL, or a group, does not have.
func jobNCCL() error {
	d, err := cudaops.Open(0)
	if err != nil {
		return err
	}
	invitation, err := d.Invite()
	if err != nil {
		return err
	}
	if _, err := d.Join(invitation[1:], 0, 1); err == nil ||
		!strings.Contains(err.Error(), "an invitation of 127 bytes: want 128") {
		return fmt.Errorf("a short invitation: %v", err)
	}
	g, err := d.Join(invitation, 0, 1)
	if err != nil {
		return err
	}
	b, err := d.Alloc(mem.F32, 100)
	if err != nil {
		return err
	}
	if err := g.Allreduce(b, b, mem.Sum); err == nil ||
		!strings.Contains(err.Error(), "the group is not ready for it") {
		return fmt.Errorf("before it has joined: %v", err)
	}
	if err := finish(g); err != nil {
		return err
	}
	host := mem.Of(make([]float32, 100))
	for want, err := range map[string]error{
		"allreduce: bxor of float32: NCCL has none":       g.Allreduce(b, b, mem.BXor),
		"bcast: 400 bytes in host: want memory of cuda:0": g.Bcast(0, host),
		"allreduce: ncclAllReduce: ncclInvalidArgument (4): invalid ": errors.Join(finish(g),
			g.Allreduce(mem.Device(d, b.Addr()+200, mem.F32, 100), b, mem.Sum)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("got %v, want %q", err, want)
		}
	}
	if err := g.Abort(); err != nil {
		return err
	}
	if _, err := g.Placed(); err == nil || !strings.Contains(err.Error(), "the group has ended") {
		return fmt.Errorf("after its end: %v", err)
	}
	return errors.Join(g.Abort(), g.Close())
}

// finish waits until the group has done its work.
func finish(g mem.Communicator) error {
	for {
		if placed, err := g.Placed(); err != nil {
			return err
		} else if placed {
			return g.Stream().Sync()
		}
	}
}

func TestGroupsOfNCCLRefuseWhatTheyCannotDo(t *testing.T) {
	cudatest.NeedFake(t)
	if out := run(t, "nccl"); out != "" {
		t.Error(out)
	}
}
