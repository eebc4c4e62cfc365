package measure

import (
	"context"
	"errors"
	"fmt"

	"gompi/comm"
	"gompi/comm/ddp"
	"gompi/comm/window"
	"gompi/internal/mem"
)

// A cell is an operation at one size, on one rank.
type cell struct {
	ctx      context.Context
	c        *comm.Comm
	op       operation
	rank, np int
	space    mem.Space
	alloc    bool // the vectors are from Comm.Alloc
	redop    mem.Op
	inPlace  bool
	inputs   *patterns

	stream   ddp.Stream // of the space's device; nil: the vectors are in host memory
	training *training  // of an operation with a model

	sendAll, recvAll mem.Buffer // memory for the largest size

	n          int // elements of a block
	send, recv mem.Buffer
	window     int
	requests   []comm.Request

	win      *window.Window // of one-sided operations
	part     []byte         // this rank's part of the window
	theirs   []byte         // rank 1's part, if memory is shared
	one, old mem.Buffer     // operand and result of fetch_and_op

	steps int     // steps of computation in halo
	work  float64 // result of computing, so that the compiler keeps it
}

// Numbers of messages in a window, and the bytes that bound them.
const (
	mostWindow  = 64
	leastWindow = 2
	windowBytes = 512 << 20
)

func windowOf(bytes int) int {
	return min(max(windowBytes/max(bytes, 1), leastWindow), mostWindow)
}

// allocate allocates memory for blocks of up to n elements.
func (k *cell) allocate(n int) (err error) {
	if k.op.model != nil {
		k.training, err = newTraining(k.ctx, k.c, k.op.model, k.inputs.t, k.stream)
		return err
	}
	k.requests = make([]comm.Request, mostWindow)
	send, recv := k.vectors(k.rank)
	take := func(n int) (mem.Buffer, error) { return k.memory().Alloc(k.inputs.t, n) }
	if k.op.strided {
		take = func(n int) (mem.Buffer, error) { return strided(k.inputs.t, n) }
	} else if k.alloc { // all ranks allocate the same size
		for rank := range k.np {
			s, r := k.vectors(rank)
			send, recv = max(send, s), max(recv, r)
		}
		take = func(n int) (mem.Buffer, error) { return k.c.Alloc(k.ctx, k.inputs.t, n) }
	}
	if k.sendAll, err = take(send * n); err != nil {
		return err
	}
	k.recvAll, err = take(recv * n)
	return err
}

// strided returns n elements in which every 8 bytes are followed by a gap of 8 bytes. They are in
// host memory, not from Alloc, and are unsigned numbers of the size of t.
func strided(t mem.Type, n int) (mem.Buffer, error) {
	block := max(8/t.Size(), 1)
	l, err := comm.Vector((n+block-1)/block, block, 2*block)
	if err != nil {
		return mem.Buffer{}, err
	}
	var b mem.Buffer
	switch t.Size() {
	case 1:
		b, err = comm.Lay(make([]uint8, l.Extent()), l)
	case 2:
		b, err = comm.Lay(make([]uint16, l.Extent()), l)
	case 4:
		b, err = comm.Lay(make([]uint32, l.Extent()), l)
	case 8:
		b, err = comm.Lay(make([]uint64, l.Extent()), l)
	default:
		return b, fmt.Errorf("vector of %v: want elements of 8 bytes at most", t)
	}
	return b.Slice(0, min(n, b.Len())), err
}

// vectors returns the numbers of blocks in a rank's vectors. In place there is only the longer
// vector.
func (k *cell) vectors(rank int) (send, recv int) {
	send, recv = k.op.blocks(rank, k.np)
	if k.inPlace && send > 0 && recv > 0 {
		send, recv = 0, max(send, recv)
	}
	return send, recv
}

// free frees the memory of allocate.
func (k *cell) free() error {
	if k.op.model != nil {
		return k.training.d.Close(k.ctx)
	}
	if k.alloc && !k.op.strided {
		return errors.Join(k.c.Free(k.ctx, k.sendAll), k.c.Free(k.ctx, k.recvAll))
	}
	k.memory().Free(k.sendAll)
	k.memory().Free(k.recvAll)
	return nil
}

// memory is the space of the vectors.
func (k *cell) memory() mem.Space {
	if k.space == nil {
		return mem.Host
	}
	return k.space
}

// bind sets k to the cell of blocks of n elements.
func (k *cell) bind(n int) {
	k.n = n
	k.window = windowOf(n * k.inputs.t.Size())
	send, recv := k.op.blocks(k.rank, k.np)
	if !k.inPlace || send == 0 || recv == 0 {
		k.send, k.recv = k.sendAll.Slice(0, send*n), k.recvAll.Slice(0, recv*n)
		return
	}
	k.send = k.recvAll.Slice(0, max(send, recv)*n)
	k.recv = k.send
	if recv < send {
		k.recv = block(k.send, k.rank, n)
	}
	if send < recv {
		k.send = block(k.recv, k.rank, n)
	}
}

// unset fills memory in which nothing was received. No pattern contains this byte.
const unset = 0xa5

// prepare sets the input in send. It also touches all of the memory, so that no page fault is
// timed, and so that copies in other ranks' caches are stale.
func (k *cell) prepare() error {
	if err := write(k.recv, func(host mem.Buffer) { fill(host.HostSlice(), unset) }); err != nil {
		return err
	}
	for _, b := range append(k.training.gradients(), k.send) {
		if err := write(b, func(host mem.Buffer) { tile(host, k.inputs.by[k.rank]) }); err != nil {
			return err
		}
	}
	return nil
}

// write lets f set b's elements, in host memory.
func write(b mem.Buffer, f func(host mem.Buffer)) error {
	if b.IsHost() {
		f(b)
		return nil
	}
	host, err := mem.Host.Alloc(b.Type(), b.Len())
	if err != nil {
		return err
	}
	f(host)
	return mem.Copy(b, host)
}

// fill stores x into all of s, at the speed of a copy.
func fill(s []byte, x byte) {
	if len(s) == 0 {
		return
	}
	s[0] = x
	for done := 1; done < len(s); {
		done += copy(s[done:], s[:done])
	}
}

// check runs the operation once and compares its results. All ranks get an error if any rank's
// result is wrong.
func (k *cell) check() error {
	if k.op.parts == nil {
		return k.op.run(k)
	}
	if err := k.op.run(k); err != nil {
		return err
	}
	parts, err := k.op.parts(k)
	if err != nil {
		return err
	}
	if err := fetch(parts); err != nil {
		return err
	}
	wrong := wrongPart(k.rank, parts)
	bad := int64(0)
	if wrong != nil {
		bad = 1
	}
	anywhere, err := k.agree(bad)
	if err == nil && anywhere > 0 {
		err = errors.New("another rank received wrong data")
	}
	if wrong != nil {
		return wrong
	}
	return err
}

// fetch copies the results to host memory.
func fetch(parts []part) error {
	for i := range parts {
		p := &parts[i]
		if p.got.IsHost() {
			continue
		}
		host, err := mem.Host.Alloc(p.got.Type(), p.got.Len())
		if err == nil {
			err = mem.Copy(host, p.got)
		}
		if err != nil {
			return err
		}
		p.got = host
	}
	return nil
}

// wrongPart returns an error for the first wrong byte.
func wrongPart(rank int, parts []part) error {
	for i, p := range parts {
		if at := p.verify(); at >= 0 {
			return fmt.Errorf("rank %d received wrong data: element %d of block %d of %d", rank, at/p.got.Type().Size(),
				i, len(parts))
		}
	}
	return nil
}

// agree returns the largest x of all ranks.
func (k *cell) agree(x int64) (int64, error) {
	v := []int64{x}
	err := comm.Allreduce(k.ctx, k.c, v, v, comm.Max)
	return v[0], err
}
