package cudaops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gompi/cudaops/internal/driver"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// NVIDIA's NCCL does whole collectives among devices. The first use opens the library. Its calls
// are nonblocking: they begin an operation without a wait for other ranks, and NCCLBusy reports the
// progress.

var _ mem.CollectiveLibrary = (*Device)(nil)

// Library opens NCCL and returns its name and version, or an error that says why there is none.
func (d *Device) Library() (string, error) {
	v, err := driver.LoadNCCL(env.String(env.LibNCCL))
	if err != nil {
		return "", fmt.Errorf("no NCCL: %w", err)
	}
	return fmt.Sprintf("NCCL %d.%d.%d", v/10000, v/100%100, v%100), nil
}

// Invite, called by one rank, returns the invitation by which all ranks Join. In that rank's
// process NCCL starts a thread that waits for the others.
func (d *Device) Invite() ([]byte, error) {
	if _, err := d.Library(); err != nil {
		return nil, err
	}
	ctx, err := d.context()
	if err != nil {
		return nil, d.failed("context", err)
	}
	id, err := driver.NewNCCLID(ctx)
	return id[:], d.failed("NCCL", err)
}

// Join begins to make d a rank of a group of size devices. Joining takes NCCL some seconds and some
// hundred megabytes of the device.
func (d *Device) Join(invitation []byte, rank, size int) (mem.Communicator, error) {
	if _, err := d.Library(); err != nil {
		return nil, err
	}
	var id driver.NCCLID
	if len(invitation) != len(id) {
		return nil, d.failed("NCCL", fmt.Errorf("an invitation of %d bytes: want %d", len(invitation), len(id)))
	}
	copy(id[:], invitation)
	s, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	g := &group{d: d, s: s, me: rank, parts: make([]driver.Part, size)}
	if g.comm, err = driver.JoinNCCL(s.ctx, &id, rank, size); err != nil {
		s.Close()
		return nil, d.failed("joining", err)
	}
	g.state, g.operation = placing, "joining"
	return g, nil
}

// A group is a mem.Communicator of NCCL.
type group struct {
	d         *Device
	s         *Stream // of the collectives
	comm      driver.NCCL
	me        int
	parts     []driver.Part // of an exchange, by rank
	state     groupState
	operation string // of the last call
}

type groupState uint8

const (
	quiet   groupState = iota
	placing            // NCCL meets the other ranks, or enqueues a collective
	ended
)

// ncclTypes are NCCL's numbers of the types for reductions, ncclOps of operators.
var (
	ncclTypes = map[Type]int{
		mem.I8: 0, mem.U8: 1, mem.I32: 2, mem.U32: 3, mem.I64: 4, mem.U64: 5, mem.F16: 6, mem.F32: 7, mem.F64: 8,
		mem.BF16: 9,
	}
	ncclOps = map[Op]int{mem.Sum: 0, mem.Prod: 1, mem.Max: 2, mem.Min: 3, mem.Avg: 4}
)

// Stream implements mem.Communicator.
func (g *group) Stream() mem.Stream { return g.s }

// Allreduce implements mem.Communicator.
func (g *group) Allreduce(send, recv Buffer, op Op) error {
	return g.reduce("allreduce", driver.AllReduce, send, recv, send.Len(), op, 0)
}

// Reduce implements mem.Communicator.
func (g *group) Reduce(root int, send, recv Buffer, op Op) error {
	if g.me != root {
		recv = Buffer{}
	}
	return g.reduce("reduce", driver.Reduce, send, recv, send.Len(), op, root)
}

// ReduceScatter implements mem.Communicator.
func (g *group) ReduceScatter(send, recv Buffer, op Op) error {
	return g.reduce("reducescatter", driver.ReduceScatter, send, recv, recv.Len(), op, 0)
}

func (g *group) reduce(name string, what driver.Collective, send, recv Buffer, count int, op Op, root int) error {
	if !mem.GroupReduces(op, send.Type()) {
		return g.d.failed(name, fmt.Errorf("%v of %v: NCCL has none", op, send.Type()))
	}
	return g.collect(name, what, send, recv, count, ncclTypes[send.Type()], ncclOps[op], root)
}

// Bcast implements mem.Communicator.
func (g *group) Bcast(root int, b Buffer) error {
	return g.collect("bcast", driver.Broadcast, b, b, b.Size(), ncclTypes[mem.U8], 0, root)
}

// Allgather implements mem.Communicator.
func (g *group) Allgather(send, recv Buffer) error {
	return g.collect("allgather", driver.AllGather, send, recv, send.Size(), ncclTypes[mem.U8], 0, 0)
}

func (g *group) collect(name string, what driver.Collective, send, recv Buffer, count, typ, op, root int) error {
	if err := g.begin(name, send, recv); err != nil {
		return err
	}
	return g.failed(driver.Collect(g.s.ctx, g.comm, what, send.Addr(), recv.Addr(), count, typ, op, root, g.s.handle))
}

// Exchange implements mem.Communicator. A rank's part for itself is copied.
func (g *group) Exchange(out, in []Buffer) error {
	if err := g.begin("exchange", out...); err != nil {
		return err
	}
	if err := g.reach(in...); err != nil {
		return err
	}
	for i := range g.parts {
		g.parts[i] = driver.Part{Out: out[i].Addr(), In: in[i].Addr(), OutSize: uintptr(out[i].Size()),
			InSize: uintptr(in[i].Size())}
	}
	g.parts[g.me] = driver.Part{}
	if own, place := out[g.me], in[g.me]; !mem.Same(own, place) {
		if err := g.s.Copy(place, own); err != nil {
			return g.failed(err)
		}
	}
	return g.failed(driver.ExchangeNCCL(g.s.ctx, g.comm, g.parts, g.s.handle))
}

// begin refuses memory of other devices, and a second operation at a time.
func (g *group) begin(name string, bs ...Buffer) error {
	if g.state != quiet {
		return g.d.failed(name, fmt.Errorf("the group is not ready for it (%d, in %q)", g.state, g.operation))
	}
	g.operation = name
	if err := g.reach(bs...); err != nil {
		return err
	}
	g.state = placing
	return nil
}

func (g *group) reach(bs ...Buffer) error {
	for _, b := range bs {
		if b.Len() > 0 && b.Space() != g.d {
			return g.failed(fmt.Errorf("%d bytes in %s: want memory of %s", b.Size(), b.Space().Name(), g.d.name))
		}
	}
	return nil
}

// failed adds the operation to err.
func (g *group) failed(err error) error { return g.d.failed(g.operation, err) }

// Placed implements mem.Communicator.
func (g *group) Placed() (bool, error) {
	if g.state == ended {
		return false, g.failed(errors.New("the group has ended"))
	}
	busy, err := driver.NCCLBusy(g.s.ctx, g.comm) // an error may also come while the device works
	if err != nil || busy {
		return false, g.failed(err)
	}
	g.state = quiet
	return true, nil
}

// abortLimit bounds Abort's wait for the library and the device.
const abortLimit = 10 * time.Second

// Abort implements mem.Communicator.
func (g *group) Abort() error {
	if g.state == ended {
		return nil
	}
	g.state = ended
	ctx, cancel := context.WithTimeout(context.Background(), abortLimit)
	go func() { // ends when the library's call returns, if ever
		driver.AbortNCCL(g.s.ctx, g.comm)
		g.s.Close()
		cancel()
	}()
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return g.d.failed("ncclCommAbort", fmt.Errorf("has not ended after %v: the device may still use the buffers",
			abortLimit))
	}
	return nil
}

// Close implements mem.Communicator.
func (g *group) Close() error {
	if g.state == ended {
		return nil
	}
	g.operation, g.state = "closing", ended
	err := driver.FinalizeNCCL(g.s.ctx, g.comm)
	for busy := err == nil; busy; time.Sleep(time.Millisecond) {
		busy, err = driver.NCCLBusy(g.s.ctx, g.comm)
	}
	end := driver.DestroyNCCL
	if err != nil {
		end = driver.AbortNCCL
	}
	return g.failed(errors.Join(err, end(g.s.ctx, g.comm), g.s.Close()))
}
