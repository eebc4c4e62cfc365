package main

import (
	"context"
	"fmt"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/cudaops"
	"gompi/examples/internal/nn"
	"gompi/examples/train/internal/bytelm"
	"gompi/examples/train/internal/cudann"
)

// A model is the network with its optimiser, in host memory or on a device. Package bytelm
// documents its methods.
type model interface {
	Rows() int
	Evaluate(contexts, targets []byte) (loss float64, right int, err error)
	Backward(contexts, targets []byte, scale float32, ready func(i int)) (float64, error)
	Step(step int64, rate float64) error
	Memory() []ddp.Slice
	parameters() []ddp.Slice
	// hookMemory returns the memory of h for the parameters.
	hookMemory(h ddp.Hook) (ddp.Memory, error)
	// share makes the ranks of c train the model together.
	share(ctx context.Context, c *comm.Comm, opts ddp.Options) (*ddp.DDP, error)
	// Sync waits until parameters and Memory have the results of the last Step.
	Sync() error
	Close() error
	// String describes the processor that computes.
	String() string
}

// newModel returns the model in host memory, or on a device of this host, which its ranks take in
// turn.
func newModel(ctx context.Context, c *comm.Comm, device string, shape bytelm.Shape, seed uint64) (model, error) {
	if device == "host" {
		net := bytelm.New(shape, seed)
		return &hostModel{net, nn.NewAdam(net.Params()), shape.Workers}, nil
	}
	d, err := deviceOf(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("-device %s: %w", device, err)
	}
	net, err := cudann.New(d, shape, seed)
	if err != nil {
		return nil, err
	}
	adam, err := cudann.NewAdam(net)
	if err != nil {
		return nil, net.Close() // which has the same error
	}
	return &deviceModel{net, adam, d}, nil
}

// deviceOf returns this rank's device. If there are fewer devices than ranks, some ranks share one.
func deviceOf(ctx context.Context, c *comm.Comm) (*cudaops.Device, error) {
	devices, err := cudaops.Devices()
	if err != nil {
		return nil, err
	}
	host, err := c.SplitHost(ctx)
	if err != nil {
		return nil, err
	}
	return devices[host.Rank()%len(devices)], host.Close(ctx)
}

type hostModel struct {
	*bytelm.Network
	adam    *nn.Adam
	workers nn.Workers
}

func (m *hostModel) Evaluate(contexts, targets []byte) (loss float64, right int, err error) {
	loss, right = m.Network.Evaluate(contexts, targets)
	return loss, right, nil
}

func (m *hostModel) Backward(contexts, targets []byte, scale float32, ready func(i int)) (float64, error) {
	return m.Network.Backward(contexts, targets, scale, ready), nil
}

func (m *hostModel) Step(step int64, rate float64) error {
	m.adam.Step(step, rate)
	return nil
}

func (m *hostModel) Memory() []ddp.Slice { return m.adam.Memory() }

func (m *hostModel) parameters() (all []ddp.Slice) {
	for _, p := range m.Params() {
		all = append(all, ddp.Slice{Name: p.Name, Data: comm.Of(p.Data)})
	}
	return all
}

func (m *hostModel) hookMemory(h ddp.Hook) (ddp.Memory, error) { return ddp.MemoryOf(h, m.Params()) }

func (m *hostModel) share(ctx context.Context, c *comm.Comm, opts ddp.Options) (*ddp.DDP, error) {
	return ddp.New(ctx, c, m.Params(), opts)
}

func (m *hostModel) Sync() error    { return nil }
func (m *hostModel) Close() error   { return nil }
func (m *hostModel) String() string { return fmt.Sprintf("%d compute goroutines", m.workers) }

type deviceModel struct {
	*cudann.Network
	*cudann.Adam
	device *cudaops.Device
}

func (m *deviceModel) parameters() (all []ddp.Slice) {
	for _, p := range m.Params() {
		all = append(all, ddp.Slice{Name: p.Name, Data: p.Data})
	}
	return all
}

// hookMemory returns none: hooks are for host memory.
func (m *deviceModel) hookMemory(ddp.Hook) (ddp.Memory, error) { return ddp.Memory{}, nil }

func (m *deviceModel) share(ctx context.Context, c *comm.Comm, opts ddp.Options) (*ddp.DDP, error) {
	return ddp.NewOn(ctx, c, m.Stream(), m.Params(), opts)
}

func (m *deviceModel) Sync() error { return m.Stream().Sync() }

func (m *deviceModel) String() string {
	return fmt.Sprintf("a device (%s: %s, %s)", m.device.Name(), m.device.Info().Model, m.Products())
}
