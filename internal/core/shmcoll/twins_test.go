package shmcoll

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/path"
	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
	"gompi/internal/mem"
	"gompi/mpi/libmpi/twins"
)

// A twinPort is the Port of a member of a twinTeam.
type twinPort struct {
	shmsync.Port // for errors, of which there are none
	all          []*twinPort
	twin         int
	rests        func() // called when this member needs the twin to go on
	rung         chan struct{}
	woken        uint64 // by this member, a bit for each
}

func (p *twinPort) Begun()                {}
func (p *twinPort) TryProgress(int) error { return nil }
func (p *twinPort) Looks() int            { return 1 }

func (p *twinPort) Await(word *atomic.Uint64, want uint64, member int) error {
	if member == p.twin {
		p.rests()
	}
	for word.Load() < want {
		<-p.rung
	}
	return nil
}

func (p *twinPort) Wake(member int) {
	p.woken |= 1 << member
	select {
	case p.all[member].rung <- struct{}{}:
	default:
	}
}

// A twinTeam is the members of a communicator, of which C is one, too, in a copy of the memory.
type twinTeam struct {
	members []*Collectives
	ports   []*twinPort
	twin    int
	bufs    [][2][]byte // of each member: what it sends and receives
	round   round
}

// A round is package round's state of a communicator's collectives.
type round struct {
	digest, seq uint64
	call        shmsync.EncodedCall
}

// bufSize is the bytes of each of a member's buffers.
const bufSize = 1 << 14

func newTwinTeam(t *testing.T, size, twin int) *twinTeam {
	p := &twinTeam{twin: twin, ports: make([]*twinPort, size), bufs: make([][2][]byte, size)}
	for i := range size {
		p.ports[i] = &twinPort{all: p.ports, twin: twin, rung: make(chan struct{}, 1)}
		for k := range p.bufs[i] {
			words := make([]uint64, bufSize/8)
			p.bufs[i][k] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bufSize)
		}
	}
	h := shmsynctest.NewHost(size, path.LargeBuffer(size))
	for _, team := range h.TeamsOver(t, shmsync.Gate{}, func(i int) shmsync.Port { return p.ports[i] }) {
		p.members = append(p.members, New(team, nil, nil, pathsOf(size)))
	}
	return p
}

// memory returns C's struct members: the twin's fields and buffers, and the blocks of all.
func (p *twinTeam) memory() []byte {
	me := p.members[p.twin]
	fields := struct {
		shmsync.Cursors
		round
	}{me.Cursors(), p.round}
	fields.ToAck = max(fields.ToAck, fields.Acked) // less means as much
	all := bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&fields)), unsafe.Sizeof(fields)))
	rings := me.Rings() // which lie beside each other
	all = append(all, unsafe.Slice((*byte)(rings[0]), 2*(uintptr(rings[1])-uintptr(rings[0])))...)
	all = append(append(all, p.bufs[p.twin][0]...), p.bufs[p.twin][1]...)
	for i := range p.members {
		all = append(all, p.block(i)...)
	}
	return all
}

func (p *twinTeam) block(i int) []byte {
	return unsafe.Slice((*byte)(p.members[p.twin].Blocks()[i]), shmsync.BlockSize)
}

// blockIn returns a member's block in memory.
func (p *twinTeam) blockIn(memory []byte, i int) []byte {
	return memory[len(memory)-(len(p.members)-i)*shmsync.BlockSize:][:shmsync.BlockSize]
}

// in returns the copy in memory of b, a part of any block.
func (p *twinTeam) in(memory, b []byte) []byte {
	for i := range p.members {
		at := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&p.block(i)[0]))
		if at < shmsync.BlockSize {
			return p.blockIn(memory, i)[at:][:len(b)]
		}
	}
	panic("in no block")
}

// payload returns the data that a member gives in x, the last collective.
func (p *twinTeam) payload(x task, member int) []byte {
	n := x.count * x.typ.Size()
	switch x.kind {
	case calls.Barrier:
		n = 1
	case calls.Scatter:
		n *= len(p.members) - 1
	case calls.Alltoall, calls.ReduceScatterBlock:
		n *= len(p.members)
	}
	me := p.members[p.twin]
	return me.Payload(member, me.Last(), 0, n)
}

// A task is a collective: of count elements in a block, or in all.
type task struct {
	kind  calls.Kind
	typ   mem.Type
	op    mem.Op
	root  int
	count int
}

func (p *twinTeam) someTask(r *rand.Rand, rooted bool) task {
	var kinds []calls.Kind
	for _, k := range calls.Collectives {
		if k.InC() && (k.Rooted() || !rooted) {
			kinds = append(kinds, k)
		}
	}
	x := task{kind: pick(r, kinds...), typ: pick(r, mem.I32, mem.I64, mem.F32, mem.F64), root: r.IntN(len(p.members))}
	x.op = pick(r, mem.Sum, mem.Prod, mem.Min, mem.Max)
	x.count = 1 + min(r.IntN(1<<r.IntN(11)), 4096/len(p.members)/x.typ.Size()-1)
	return x
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// callOf returns the call of a member. Collectives that only move data move bytes, as in MPI.
func (p *twinTeam) callOf(x task, member int) *call.Call {
	typ, n := x.typ, x.count
	if !x.kind.Reduces() {
		typ, n = mem.U8, n*x.typ.Size()
	}
	sent, received := n, n
	switch x.kind {
	case calls.Scatter, calls.Alltoall, calls.ReduceScatterBlock:
		sent *= len(p.members)
	}
	switch x.kind {
	case calls.Gather, calls.Allgather, calls.Alltoall:
		received *= len(p.members)
	}
	part := func(k, n int) mem.Buffer { return mem.HostBytes(typ, n, p.bufs[member][k][:n*typ.Size()]) }
	a := call.Arguments{Send: part(0, sent), Recv: part(1, received), Root: x.root, Op: call.Op{Kind: x.op}}
	return new(call.Call).Fill(x.kind, &a)
}

// inC has C do x on memory, and reports whether C has, and whom it has woken.
func (p *twinTeam) inC(c *twins.C, x task, memory []byte) (done bool, woken uint64) {
	member, typ := uint64(p.twin|len(p.members)<<8), uint64(x.typ)|uint64(x.typ.Size())<<8|uint64(x.op)<<16
	got := c.Call("collective", memory, uint64(x.kind), member, typ, uint64(x.root), uint64(x.count), shmsync.BlockSize)
	return got&1 != 0, got >> 1
}

// beside has all others do their part of x, and returns when they need the twin, or nothing more.
// wait returns when they are through.
func (p *twinTeam) beside(x task, next *round) (wait func() error) {
	rest, ends := make(chan struct{}), make(chan error)
	for i, m := range p.members {
		if i == p.twin {
			continue
		}
		rested := false
		p.ports[i].rests = func() {
			if !rested {
				rested = true
				rest <- struct{}{}
			}
		}
		go func() {
			err := m.inOneStep(p.callOf(x, i), next)
			p.ports[i].rests()
			ends <- err
		}()
	}
	for range len(p.members) - 1 {
		<-rest
	}
	return func() (err error) {
		for range len(p.members) - 1 {
			if e := <-ends; e != nil {
				err = e
			}
		}
		return err
	}
}

func (c *Collectives) inOneStep(o *call.Call, next *round) error {
	c.Begin(&next.call, next.digest, false)
	return c.Run(&path.Path{Via: path.Shm, Algorithm: path.OneStep}, o)
}

// unread returns the payload in the twin's block that no other member reads: C and Go may differ
// there.
func (p *twinTeam) unread(x task) []byte {
	me, n := p.members[p.twin], x.count*x.typ.Size()
	switch {
	case x.kind == calls.Gather && x.root == p.twin:
		return me.Payload(p.twin, me.Last(), 0, n)
	case x.kind == calls.Alltoall, x.kind == calls.ReduceScatterBlock:
		return me.Payload(p.twin, me.Last(), me.Block(p.twin, me.Last())*n, n)
	}
	return nil
}

// next returns the round of x.
func (p *twinTeam) next(x task) round {
	a, b := p.callOf(x, p.twin).Words()
	n := round{seq: p.round.seq + 1, call: shmsync.EncodedCall{A: a, B: b}}
	n.digest = n.call.Digest(p.round.digest)
	return n
}

// step does x in Go and in C.
func (p *twinTeam) step(t *testing.T, c *twins.C, x task) {
	t.Helper()
	next := p.next(x)
	wait := p.beside(x, &next)
	afterC := p.memory()
	before := bytes.Clone(afterC)
	done, woken := p.inC(c, x, afterC)

	port := p.ports[p.twin]
	port.woken = 0
	err := p.members[p.twin].inOneStep(p.callOf(x, p.twin), &next)
	if err != nil || !done {
		t.Fatalf("%+v of %d members, of whom C is %d: %v in Go, done in C: %v", x, len(p.members), p.twin, err, done)
	}
	p.round = next
	if unread := p.unread(x); unread != nil {
		copy(p.in(afterC, unread), unread)
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	afterGo := p.memory()
	for i := range p.members {
		if i != p.twin { // who has gone on
			copy(p.blockIn(afterGo, i), p.blockIn(before, i))
			copy(p.in(afterGo, p.payload(x, i)), p.in(before, p.payload(x, i)))
		}
	}
	copy(p.in(afterGo, p.payload(x, p.twin)), p.payload(x, p.twin)) // maybe in another's block
	if woken != port.woken || !bytes.Equal(afterC, afterGo) {
		t.Fatalf("%+v of %d members, of whom C is %d: Go wakes %b, C %b, and what the two leave differs at byte %d",
			x, len(p.members), p.twin, port.woken, woken, firstDifference(afterC, afterGo))
	}
}

// A member does short collectives at random in Go and in C, after the others have done as much of
// theirs as they can.
func TestShortCollectivesInGoAndC(t *testing.T) {
	c := twins.Start(t)
	for size := 2; size <= 3; size++ {
		for twin := range size {
			r := rand.New(rand.NewPCG(uint64(size), uint64(twin)))
			p := newTwinTeam(t, size, twin)
			for i := range 200 {
				x := p.someTask(r, i > 80) // then places are free when others say so
				for i := range p.bufs {
					fillNumbers(p.bufs[i][0], x.typ, r)
					fillNumbers(p.bufs[i][1], x.typ, r)
				}
				p.step(t, c, x)
			}
		}
	}
}

// fillNumbers stores elements, of which all combinations are numbers.
func fillNumbers(b []byte, t mem.Type, r *rand.Rand) {
	for i := 0; i < len(b); i += t.Size() {
		switch t {
		case mem.F32:
			binary.NativeEndian.PutUint32(b[i:], math.Float32bits(float32(r.NormFloat64())))
		case mem.F64:
			binary.NativeEndian.PutUint64(b[i:], math.Float64bits(r.NormFloat64()))
		case mem.I32:
			binary.NativeEndian.PutUint32(b[i:], r.Uint32())
		default:
			binary.NativeEndian.PutUint64(b[i:], r.Uint64())
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
