package ctl

import "gompi/internal/boot/wire"

// FindGPUs asks an agent without ranks for the GPUs of its host. The answer is GPUs, which may
// take seconds.
type FindGPUs struct{}

func (*FindGPUs) fields(*wire.Codec) {}

// GPUs are the GPUs of a host.
type GPUs struct {
	Found   []byte // a topo.Host as JSON
	Visible string // the agent's own CUDA_VISIBLE_DEVICES
	Limited bool   // that variable is set
}

func (m *GPUs) fields(c *wire.Codec) {
	c.Bytes(&m.Found, maxGPUs)
	c.String(&m.Visible, maxString)
	c.Bools(&m.Limited)
}

// maxGPUs exceeds the JSON of any host, in bytes.
const maxGPUs = 2 << 20
