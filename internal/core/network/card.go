package network

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"gompi/internal/boot"
	"gompi/internal/core/path"
	"gompi/internal/world"
)

// A Card is a rank's message to all others in Init.
type Card struct {
	CPUs      CPUs   // processors that the rank may run on
	Quota     int    // processors that its control group grants, 0 for no limit
	Machine   []byte // equal for ranks of the same machine, empty if not known
	Rules     []byte // the rules to choose by, from rank 0
	Block     uint64 // token of the block for the world
	Clock     uint64 // equal for ranks with the same monotonic clock, 0 if not known
	Devices   bool   // buffers may be in the memory of devices
	NCCL      bool   // use NCCL for buffers on devices; only rank 0's counts
	Transport []byte // addresses of the rank in the transport
}

// The flags of an encoded Card.
const (
	hasDevices = 1 << iota
	wantsLibrary
)

// ErrCard means that a Card of another rank cannot be decoded.
var ErrCard = errors.New("another rank's card cannot be read: are all ranks of one gompi version?")

// Encode returns c for Decode on other ranks.
func (c Card) Encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(c.Quota))
	b = binary.LittleEndian.AppendUint64(b, c.Block)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, c.Clock)
	if c.Devices {
		b[10] |= hasDevices
	}
	if c.NCCL {
		b[10] |= wantsLibrary
	}
	for _, part := range [][]byte{c.CPUs, c.Machine, c.Rules} {
		b = appendField(b, part)
	}
	return append(b, c.Transport...)
}

// DecodeCard decodes the Card of a single rank.
func DecodeCard(b []byte) (c Card, err error) {
	if len(b) < 19 || b[10] > hasDevices|wantsLibrary {
		return c, ErrCard
	}
	c.Quota = int(binary.LittleEndian.Uint16(b))
	c.Block = binary.LittleEndian.Uint64(b[2:])
	c.Devices, c.NCCL = b[10]&hasDevices != 0, b[10]&wantsLibrary != 0
	c.Clock = binary.LittleEndian.Uint64(b[11:])
	b = b[19:]
	for _, part := range []*[]byte{(*[]byte)(&c.CPUs), &c.Machine, &c.Rules} {
		if *part, b, err = cutField(b); err != nil {
			return c, err
		}
	}
	c.Transport = b
	return c, nil
}

// Cards are the Cards of all ranks, by rank.
type Cards []Card

// DecodeCards decodes the Cards of all ranks of a job of a size, and of replacements for lost ranks.
// A replacement's Card is empty until its rank has started.
func DecodeCards(encoded [][]byte, size int) (all, late Cards, err error) {
	cs := make(Cards, len(encoded))
	for r, b := range encoded {
		if r >= size && len(b) == 0 {
			continue
		}
		if cs[r], err = DecodeCard(b); err != nil {
			return nil, nil, err
		}
	}
	return cs[:size:size], cs[size:], nil
}

// Transports returns the parts of the transports, by rank.
func (cs Cards) Transports() [][]byte {
	parts := make([][]byte, len(cs))
	for r, c := range cs {
		parts[r] = c.Transport
	}
	return parts
}

// Devices returns the ranks whose buffers may be in the memory of devices.
func (cs Cards) Devices() []bool {
	may := make([]bool, len(cs))
	for r, c := range cs {
		may[r] = c.Devices
	}
	return may
}

// OneClock reports whether all ranks read the same monotonic clock.
func (cs Cards) OneClock() bool {
	return len(cs) == 1 || cs[0].Clock != 0 && !slices.ContainsFunc(cs,
		func(c Card) bool { return c.Clock != cs[0].Clock })
}

// Agreed returns rank 0's rules, completed by the Cards of all ranks, the same on all ranks.
func (cs Cards) Agreed(info *boot.Info) (*path.Rules, error) {
	t, err := path.Decode(cs[0].Rules)
	if err != nil {
		return nil, err
	}
	t.Hosts = max(info.Nodes, 1)
	for _, load := range cs.Loads(info) {
		t.Oversubscribed = t.Oversubscribed || load > 1
	}
	return t, nil
}

// A pool is the processors that some ranks share.
type pool struct {
	cpus    CPUs
	ranks   int
	unknown int // ranks that do not know their CPUs: each counts as a processor
	quota   int
}

func (p *pool) add(c *Card) {
	p.ranks++
	if len(c.CPUs) == 0 {
		p.unknown++
	}
	if !bytes.Equal(p.cpus, c.CPUs) {
		p.cpus = p.cpus.or(c.CPUs)
	}
	p.quota = max(p.quota, c.Quota)
}

// load returns the number of ranks per processor, rounded up.
func (p *pool) load() int {
	cpus := p.cpus.count() + p.unknown
	if p.quota > 0 {
		cpus = min(cpus, p.quota)
	}
	return (p.ranks + cpus - 1) / max(cpus, 1)
}

// Loads returns the ranks per processor that each node's ranks may use, rounded up. Nodes may be
// containers of a machine: their ranks share its processors. A quota applies to a single node.
func (cs Cards) Loads(info *boot.Info) []int {
	nodes := make([]pool, max(info.Nodes, 1))
	machines := map[string]*pool{}
	for r := range cs {
		c := &cs[r]
		nodes[info.NodeIndex(world.Rank(r))].add(c)
		if len(c.Machine) == 0 {
			continue
		}
		m := machines[string(c.Machine)]
		if m == nil {
			m = &pool{}
			machines[string(c.Machine)] = m
		}
		m.add(&Card{CPUs: c.CPUs})
	}
	loads := make([]int, len(nodes))
	for i := range nodes {
		loads[i] = nodes[i].load()
	}
	for r, c := range cs {
		if m := machines[string(c.Machine)]; m != nil {
			i := info.NodeIndex(world.Rank(r))
			loads[i] = max(loads[i], m.load())
		}
	}
	return loads
}
