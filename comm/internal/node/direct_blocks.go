package node

import (
	"gompi/comm/internal/symheap"
	"gompi/internal/mem"
)

// Collectives of blocks that each have one sender and one receiver.

// runDirect runs a flow in which every member reads from every other, if all that is
// read can be reached.
func (r *Room) runDirect(f *flow) (done bool, err error) {
	v := vectors{sends: symheap.NotShared, recvs: symheap.Nowhere}
	if !f.staged && !f.overwrites {
		v[sends] = r.place(f.send)
	}
	if done, err = r.show(v); !done {
		return false, err
	}
	f.past = footprint(f.send, f.recv) > directPastFrom
	if f.fold {
		err = r.foldDirect(f)
	} else {
		r.takeDirect(f)
	}
	if err != nil {
		return true, err
	}
	return true, r.barrier()
}

// block returns n bytes, from off on, of what member j has for this one.
func (r *Room) block(f *flow, j, off, n int) []byte {
	start := 0
	if f.split {
		start = f.out.start(r.me) * f.typ.Size()
	}
	return r.vector(j, r.access.places[j][sends], start+off, n)
}

func (r *Room) takeDirect(f *flow) {
	f.piece = f.most
	for i := range r.size() {
		j := (r.me + i) % r.size() // so that not all read from the same one
		dst := f.part(f.recv, f.in, j, 0)
		if len(dst) > 0 {
			carry(dst, r.block(f, j, 0, len(dst)), f.past)
		}
	}
}

func (r *Room) foldDirect(f *flow) error {
	size := f.typ.Size()
	piece := pieceDirect(f.past)
	for off := 0; off < len(f.recv); off += piece {
		n := min(piece, len(f.recv)-off)
		for j := range r.parts {
			r.srcs[j] = mem.HostBytes(f.typ, n/size, r.block(f, j, off, n))
		}
		dst := mem.HostBytes(f.typ, n/size, f.recv[off:])
		if err := r.combineTo(f, dst); err != nil {
			return err
		}
	}
	return nil
}

// gatherDirect does a gather if all vectors can be reached.
func (r *Room) gatherDirect(root int, send, recv mem.Buffer) (done bool, err error) {
	v := vectors{sends: r.place(send.HostSlice()), recvs: symheap.Nowhere}
	if r.me == root {
		v[recvs] = r.place(recv.HostSlice())
	}
	if done, err = r.show(v); done {
		r.rooted(root, send.Size(), recvs, sends)
		err = r.barrier()
	}
	return done, err
}

// scatterDirect does a scatter if all vectors can be reached.
func (r *Room) scatterDirect(root int, send, recv mem.Buffer) (done bool, err error) {
	v := vectors{sends: symheap.Nowhere, recvs: r.place(recv.HostSlice())}
	if r.me == root {
		v[sends] = r.place(send.HostSlice())
	}
	if done, err = r.show(v); done {
		r.rooted(root, recv.Size(), sends, recvs)
		err = r.barrier()
	}
	return done, err
}

// rooted copies this member's share of the blocks of n bytes between the root's long
// vector and the short ones of all.
func (r *Room) rooted(root, n int, long, short side) {
	past := 2*n > directPastFrom // a member has as many bytes on average, all blocks included
	for j := range r.parts {
		lo, hi := r.shareOf(root, j, n)
		var ends [2][]byte
		ends[long] = r.vector(root, r.access.places[root][long], j*n+lo, hi-lo)
		ends[short] = r.vector(j, r.access.places[j][short], lo, hi-lo)
		carry(ends[recvs], ends[sends], past)
	}
}

// shareOf returns which part of the n bytes between the root and member j this member
// copies. Both ends do some of it, so that all have the same to do: the root, which is
// an end of each block, as small a part as there are members.
func (r *Room) shareOf(root, j, n int) (lo, hi int) {
	cut := (n - n/r.size()) / mem.CacheLine * mem.CacheLine
	switch {
	case r.me == root && j == root:
		return 0, n
	case r.me == root:
		return cut, n
	case r.me == j:
		return 0, cut
	}
	return 0, 0
}
