package ctl

import "gompi/internal/boot/wire"

// FindGPUs asks an agent that has started no ranks for the GPUs of its host. The
// answer is GPUs, which may take seconds.
type FindGPUs struct{}

func (*FindGPUs) fields(*wire.Codec) {}

// GPUs are those of a host.
type GPUs struct {
	Found   []byte // a topo.Host as JSON
	Visible string // CUDA_VISIBLE_DEVICES as the agent was started with it
	Limited bool   // it was set
}

func (m *GPUs) fields(c *wire.Codec) {
	c.Bytes(&m.Found, maxGPUs)
	c.String(&m.Visible, maxString)
	c.Bools(&m.Limited)
}

// maxGPUs is more than the JSON of any host, in bytes.
const maxGPUs = 2 << 20
