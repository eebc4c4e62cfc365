package comm

import (
	"bytes"
	"encoding/binary"
	"errors"

	"gompi/comm/internal/node"
	"gompi/comm/internal/path"
	"gompi/internal/boot"
)

// A card is what a rank tells all others when they meet.
type card struct {
	cpus      cpuset // that it may run on
	quota     int    // processors that its control group grants, 0 for no limit
	machine   []byte // the same for ranks on one machine, empty if not known
	table     []byte // the algorithms to use, from rank 0
	block     uint64 // for the world's room; see node.Token
	devices   bool   // buffers may be in the memory of devices
	library   bool   // these should use their own, if it is rank 0 that says so
	transport []byte // how to reach it
}

// What a card says in one byte.
const (
	hasDevices = 1 << iota
	wantsLibrary
)

var errCard = errors.New("another rank's card cannot be read: are all ranks of one gompi version?")

func (c card) encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(c.quota))
	b = binary.LittleEndian.AppendUint64(b, c.block)
	b = append(b, 0)
	if c.devices {
		b[10] |= hasDevices
	}
	if c.library {
		b[10] |= wantsLibrary
	}
	for _, part := range [][]byte{c.cpus, c.machine, c.table} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(part)))
		b = append(b, part...)
	}
	return append(b, c.transport...)
}

func decodeCard(b []byte) (c card, err error) {
	if len(b) < 11 || b[10] > hasDevices|wantsLibrary {
		return c, errCard
	}
	c.quota = int(binary.LittleEndian.Uint16(b))
	c.block = binary.LittleEndian.Uint64(b[2:])
	c.devices, c.library = b[10]&hasDevices != 0, b[10]&wantsLibrary != 0
	b = b[11:]
	for _, part := range []*[]byte{(*[]byte)(&c.cpus), &c.machine, &c.table} {
		if len(b) < 2 || len(b) < 2+int(binary.LittleEndian.Uint16(b)) {
			return c, errCard
		}
		n := 2 + int(binary.LittleEndian.Uint16(b))
		*part, b = b[2:n], b[n:]
	}
	c.transport = b
	return c, nil
}

// The cards of all ranks, by rank.
type cards []card

func decodeCards(all [][]byte) (cards, error) {
	cs := make(cards, len(all))
	for r, b := range all {
		c, err := decodeCard(b)
		if err != nil {
			return nil, err
		}
		cs[r] = c
	}
	return cs, nil
}

// transports returns the transports' parts.
func (cs cards) transports() [][]byte {
	parts := make([][]byte, len(cs))
	for r, c := range cs {
		parts[r] = c.transport
	}
	return parts
}

// blocks returns what the ranks have taken for the world's room.
func (cs cards) blocks() []node.Token {
	blocks := make([]node.Token, len(cs))
	for r, c := range cs {
		blocks[r] = node.Token(c.block)
	}
	return blocks
}

// devices returns which ranks' buffers may be in the memory of devices.
func (cs cards) devices() []bool {
	may := make([]bool, len(cs))
	for r, c := range cs {
		may[r] = c.devices
	}
	return may
}

// agreed returns rank 0's table, completed by what all cards say together, so
// that it is equal on all ranks.
func (cs cards) agreed(info *boot.Info) (*path.Rules, error) {
	t, err := path.Decode(cs[0].table)
	if err != nil {
		return nil, err
	}
	t.Hosts = max(info.Nodes, 1)
	for _, load := range cs.loads(info) {
		t.Crowded = t.Crowded || load > 1
	}
	return t, nil
}

// A pool is what ranks together have to run on.
type pool struct {
	cpus    cpuset
	ranks   int
	unknown int // ranks that cannot tell their cpus: they count as having one each
	quota   int
}

func (p *pool) add(c *card) {
	p.ranks++
	if len(c.cpus) == 0 {
		p.unknown++
	}
	if !bytes.Equal(p.cpus, c.cpus) {
		p.cpus = p.cpus.or(c.cpus)
	}
	p.quota = max(p.quota, c.quota)
}

// load returns how many ranks there are to a processor, rounded up.
func (p *pool) load() int {
	cpus := p.cpus.count() + p.unknown
	if p.quota > 0 {
		cpus = min(cpus, p.quota)
	}
	return (p.ranks + cpus - 1) / max(cpus, 1)
}

// loads returns for each node how many ranks there are to a processor that they
// may use, rounded up. Nodes may be containers of one machine, whose ranks are in
// each other's way, too; a quota is that of a node alone.
func (cs cards) loads(info *boot.Info) []int {
	nodes := make([]pool, max(info.Nodes, 1))
	machines := map[string]*pool{}
	for r := range cs {
		c := &cs[r]
		nodes[info.NodeIndex(r)].add(c)
		if len(c.machine) == 0 {
			continue
		}
		m := machines[string(c.machine)]
		if m == nil {
			m = &pool{}
			machines[string(c.machine)] = m
		}
		m.add(&card{cpus: c.cpus})
	}
	loads := make([]int, len(nodes))
	for i := range nodes {
		loads[i] = nodes[i].load()
	}
	for r, c := range cs {
		if m := machines[string(c.machine)]; m != nil {
			i := info.NodeIndex(r)
			loads[i] = max(loads[i], m.load())
		}
	}
	return loads
}
