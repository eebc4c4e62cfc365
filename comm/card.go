package comm

import (
	"bytes"
	"encoding/binary"
	"errors"

	"gompi/comm/internal/coll"
	"gompi/comm/internal/node"
	"gompi/internal/boot"
)

// A card is what a rank tells all others when they meet.
type card struct {
	cpus      cpuset // that it may run on
	quota     int    // processors that its control group grants, 0 for no limit
	table     []byte // the algorithms to use, from rank 0
	block     uint64 // for the world's room; see node.Token
	transport []byte // how to reach it
}

var errCard = errors.New("another rank's card cannot be read: are all ranks of one gompi version?")

func (c card) encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(c.quota))
	b = binary.LittleEndian.AppendUint64(b, c.block)
	for _, part := range [][]byte{c.cpus, c.table} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(part)))
		b = append(b, part...)
	}
	return append(b, c.transport...)
}

func decodeCard(b []byte) (c card, err error) {
	if len(b) < 10 {
		return c, errCard
	}
	c.quota = int(binary.LittleEndian.Uint16(b))
	c.block = binary.LittleEndian.Uint64(b[2:])
	b = b[10:]
	for _, part := range []*[]byte{(*[]byte)(&c.cpus), &c.table} {
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

// agreed returns rank 0's table, completed by what all cards say together, so
// that it is equal on all ranks.
func (cs cards) agreed(info *boot.Info) (*coll.Table, error) {
	t, err := coll.Decode(cs[0].table)
	if err != nil {
		return nil, err
	}
	t.Hosts = max(info.Nodes, 1)
	for _, load := range cs.loads(info) {
		t.Crowded = t.Crowded || load > 1
	}
	return t, nil
}

// A machine is what the ranks of one host have to run on.
type machine struct {
	cpus    cpuset // of all ranks together
	ranks   int
	unknown int // ranks that cannot tell their cpus: they count as having one each
	quota   int
}

// loads returns for each node how many ranks there are to a processor that they
// may use, rounded up.
func (cs cards) loads(info *boot.Info) []int {
	nodes := make([]machine, max(info.Nodes, 1))
	for r, c := range cs {
		n := &nodes[info.NodeIndex(r)]
		n.ranks++
		if len(c.cpus) == 0 {
			n.unknown++
		}
		if !bytes.Equal(n.cpus, c.cpus) {
			n.cpus = n.cpus.or(c.cpus)
		}
		n.quota = max(n.quota, c.quota)
	}
	loads := make([]int, len(nodes))
	for i, n := range nodes {
		cpus := n.cpus.count() + n.unknown
		if n.quota > 0 {
			cpus = min(cpus, n.quota)
		}
		loads[i] = (n.ranks + cpus - 1) / max(cpus, 1)
	}
	return loads
}
