package payload

import (
	"fmt"
	"sync"

	"gompi/internal/core/peers"
	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// Tokens of the two ends of a message: that of the Move under test, and the peer's.
const (
	own   = 5
	other = 9
)

// wire is a transport that records what it is asked to do.
type wire struct {
	transporttest.Stub
	transporttest.Log
	holds bool // buffers of sends, until Sent
}

func (w *wire) Send(_ world.Rank, h *transport.Header, b mem.Buffer, _ uint64) bool {
	s := fmt.Sprintf("%v %d", h.Kind, h.A)
	for _, f := range []struct {
		name string
		n    int
	}{{"token", int(h.B)}, {"place", int(h.Seq)}, {"chunks", int(h.Tag)}, {"bytes", b.Size()}} {
		if f.n != 0 {
			s += fmt.Sprintf(" %s %d", f.name, f.n)
		}
	}
	w.Note("%s", s)
	return !w.holds || b.Size() == 0
}

func (w *wire) Forget(_ world.Rank, token uint64) { w.Note("forget %d", token) }

// reaching is a wire that reaches the memory of peers, too.
type reaching struct {
	*wire
	place  uint64 // of this rank's memory, 0 if there is none
	source uint64
	maps   bool
}

func (r *reaching) Capabilities() transport.Capabilities {
	return transport.Capabilities{Direct: r, Getter: r}
}

func (r *reaching) Place(world.Rank, mem.Buffer) uint64  { return r.place }
func (r *reaching) Source(world.Rank, mem.Buffer) uint64 { return r.source }
func (r *reaching) Maps(uint64) bool                     { return r.maps }
func (r *reaching) Recall()                              { r.Note("recall") }
func (r *reaching) Put(_ world.Rank, place uint64, b mem.Buffer, token uint64) {
	r.Note("put %d bytes at %d, token %d", b.Size(), place, token)
}
func (r *reaching) Get(_ world.Rank, place uint64, b mem.Buffer, token uint64, helped bool) {
	r.Note("get %d bytes from %d, token %d", b.Size(), place, token)
	if !helped {
		r.Note("alone")
	}
}

// lock is a Locker without anything to do after it.
type lock struct{ sync.Mutex }

func (l *lock) Exit() { l.Unlock() }

// owner records the calls of a Move's Owner. ended delivers what CopyEnds got.
type owner struct {
	copies int
	ended  chan copyEnd
}

type copyEnd struct {
	err      error
	stranded bool
}

func (o *owner) CopyBegins()                       { o.copies++ }
func (o *owner) CopyEnds(err error, stranded bool) { o.ended <- copyEnd{err, stranded} }

// bench is a Move of a rank with one peer, rank 1.
type bench struct {
	Move
	owner
	v    Mover
	lock lock
	wire *wire
	reaching
}

// newBench returns one whose transport reaches the peer's memory if direct is true.
func newBench(reaches bool, r reaching) *bench {
	k := &bench{owner: owner{ended: make(chan copyEnd, 1)}, wire: new(wire), reaching: r}
	k.reaching.wire = k.wire
	k.v.Init(&k.lock, nil)
	k.Move.Init(&k.v, &k.owner)
	var table peers.Table
	table.Init(2)
	if reaches {
		table.Use(&k.reaching)
	} else {
		table.Use(k.wire)
	}
	k.begin(table.Peer(1), Posted, make([]byte, 10), 10)
	return k
}

// Benches whose transport only sends, whose transport holds what it sends, and whose transport
// reaches memory: that of the peer, this rank's too, or the peer's as if it were mapped.
func plain() *bench   { return newBench(false, reaching{}) }
func direct() *bench  { return newBench(true, reaching{}) }
func placed() *bench  { return newBench(true, reaching{place: 7}) }
func mapping() *bench { return newBench(true, reaching{maps: true}) }
func holding() *bench {
	k := plain()
	k.wire.holds = true
	return k
}

// begin has the Move begin with a peer, in a stage, for a message of that many bytes.
func (k *bench) begin(p *peers.Peer, s Stage, b []byte, size int) {
	k.Begin(s, mem.Bytes(b))
	k.Peer, k.Token, k.Size = p, own, size
}
