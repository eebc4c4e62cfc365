package ctl

import "gompi/internal/boot/wire"

// FindGPUs asks an agent that has started no ranks for the GPUs of its host. The
// answer is GPUs, which may take seconds.
type FindGPUs struct{}

func (*FindGPUs) kind() byte             { return kindFindGPUs }
func (*FindGPUs) append(b []byte) []byte { return b }
func (*FindGPUs) parse(*wire.Decoder)    {}

// GPUs are those of a host.
type GPUs struct {
	Found   []byte // a topo.Host as JSON
	Visible string // CUDA_VISIBLE_DEVICES as the agent was started with it
	Limited bool   // it was set
}

func (*GPUs) kind() byte { return kindGPUs }
func (m *GPUs) append(b []byte) []byte {
	return wire.AppendBool(wire.AppendBytes(wire.AppendBytes(b, m.Found), m.Visible), m.Limited)
}
func (m *GPUs) parse(d *wire.Decoder) {
	m.Found, m.Visible, m.Limited = d.Bytes(maxGPUs), d.String(maxString), d.Bool()
}

// maxGPUs is more than the JSON of any host, in bytes.
const maxGPUs = 2 << 20
