package collective

import (
	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/typemap"
)

// A Side is the arguments of either buffer of a collective.
type Side struct {
	Buf            abi.Addr
	Count          int
	Counts, Displs abi.Array
	Type           *dtypes.Datatype
	Types          []abi.Handle // of the blocks, where each has its own
}

// A vector is a buffer of a collective on this rank: a block, or a block for each rank or
// neighbor.
type vector struct {
	layout         calls.Layout
	role           calls.Role
	blocks         int // a block for each rank or neighbor; if Whole they are the same
	buf            abi.Addr
	n              int              // elements of a block that is Whole or Even
	t              *dtypes.Datatype // of all blocks, if they are not Apart
	counts, displs []int            // of the blocks of others; Apart has displacements of bytes
	types          []abi.Handle     // of blocks that are Apart
	aside          bool             // packed, even if the blocks are dense
}

func (p *Plan) vectorOf(of *calls.Vector, isRoot bool, s *Side, blocks int) vector {
	v := vector{layout: of.Layout, role: of.On(isRoot), blocks: blocks, buf: s.Buf, n: s.Count, t: s.Type,
		types: s.Types}
	if v.role != calls.Unused && v.layout >= calls.Counted {
		v.counts, v.displs = p.list(s.Counts, blocks), p.list(s.Displs, blocks)
	}
	return v
}

// block returns the address of block i, its number of elements, and their type.
func (v *vector) block(i int) (abi.Addr, int, *dtypes.Datatype) {
	switch v.layout {
	case calls.Whole:
		return v.buf, v.n, v.t
	case calls.Even:
		return v.buf.Plus(i * v.n * v.t.Extent()), v.n, v.t
	case calls.Placed:
		return v.buf.Plus(v.displs[i] * v.t.Extent()), v.counts[i], v.t
	}
	return v.buf.Plus(v.displs[i]), v.counts[i], v.usedType(i)
}

// usedType returns the datatype of a block that is Apart.
func (v *vector) usedType(i int) *dtypes.Datatype {
	return dtypes.Used(v.counts[i], dtypes.Registry.Find(v.types[i]))
}

// check returns the first mistake of a vector that is in use.
func (v *vector) check() error {
	switch {
	case v.role == calls.Unused:
		return nil
	case v.layout == calls.Whole:
		return dtypes.Check(v.n, v.t)
	case v.layout == calls.Even:
		return dtypes.CheckBlocks(v.blocks, v.n, v.t)
	case v.layout == calls.Placed:
		return v.checkPlaced()
	}
	for i := range v.counts {
		if err := v.checkApart(i); err != nil {
			return err
		}
	}
	return nil
}

func (v *vector) checkApart(i int) error { return dtypes.Check(v.counts[i], v.usedType(i)) }

func (v *vector) checkPlaced() error {
	if err := dtypes.Check(0, v.t); err != nil {
		return err
	}
	bytes := 0
	for i, n := range v.counts {
		if n < 0 {
			return negative(i, n)
		}
		if err := dtypes.Check(n, v.t); err != nil {
			return err
		}
		if _, ok := typemap.Times(v.t.Extent(), v.displs[i]); !ok && n > 0 {
			return errs.New(errs.Arg, "displacement %d is %d elements of %d bytes: want fewer than 2^61 bytes", i,
				v.displs[i], v.t.Extent())
		}
		if bytes += n * v.t.Size(); bytes < 0 {
			return errs.New(errs.Count, "the counts are of more bytes than there are addresses")
		}
	}
	return nil
}

func negative(i, n int) error { return errs.New(errs.Count, "count %d is %d: want 0 or more", i, n) }

// list returns the list in which p keeps packed elements: only read elements leave.
func (v *vector) list(p *Plan) *[]dtypes.Staged {
	if v.role == calls.Read {
		return &p.outs
	}
	return &p.ins
}

// bytes returns v for core: a single buffer, with counts and displacements of bytes in it where v
// has counts. Blocks that are not dense are packed consecutively.
func (v *vector) bytes(p *Plan) (b mem.Buffer, counts, displs []int) {
	switch {
	case v.role == calls.Unused:
		return mem.Buffer{}, nil, nil
	case v.layout == calls.Whole:
		return v.packing(p, v.buf, v.n, v.t), nil, nil
	case v.layout == calls.Even:
		return v.packing(p, v.buf, v.n*v.blocks, v.t), nil, nil
	}
	counts, displs = make([]int, v.blocks), make([]int, v.blocks)
	if _, dense := v.t.Contiguous(2); dense && !v.aside {
		return v.inPlace(counts, displs)
	}
	total := 0
	for i, n := range v.counts {
		counts[i], displs[i] = n*v.t.Size(), total
		total += counts[i]
	}
	room, list := make([]byte, total), v.list(p)
	for i := range v.counts {
		at, n, t := v.block(i)
		*list = append(*list, t.Stage(at, n, room[displs[i]:][:counts[i]]))
	}
	return mem.Bytes(room), counts, displs
}

// inPlace is bytes for dense blocks: the buffer reaches from the first to the end of the last.
func (v *vector) inPlace(counts, displs []int) (mem.Buffer, []int, []int) {
	at, _ := v.t.Contiguous(1)
	lo, hi, some := 0, 0, false
	for i, n := range v.counts {
		counts[i] = n * v.t.Size()
		displs[i] = v.displs[i] * v.t.Extent()
		if n == 0 {
			continue
		}
		if !some || displs[i] < lo {
			lo = displs[i]
		}
		if !some || displs[i]+counts[i] > hi {
			hi = displs[i] + counts[i]
		}
		some = true
	}
	for i, n := range v.counts {
		if displs[i] -= lo; n == 0 {
			displs[i] = 0
		}
	}
	return v.buf.Plus(at + lo).Buffer(hi - lo), counts, displs
}

// each returns a buffer of bytes for each block, nil if v is not in use.
func (v *vector) each(p *Plan) []mem.Buffer {
	if v.role == calls.Unused {
		return nil
	}
	all := make([]mem.Buffer, v.blocks)
	for i := range all {
		if i > 0 && v.layout == calls.Whole {
			all[i] = all[0]
			continue
		}
		at, n, t := v.block(i)
		all[i] = v.packing(p, at, n, t)
	}
	return all
}

// packing returns n elements as bytes: in place if contiguous, else packed.
func (v *vector) packing(p *Plan, buf abi.Addr, n int, t *dtypes.Datatype) mem.Buffer {
	if b, ok := t.Dense(buf, n); ok && !v.aside {
		return b
	}
	room, list := make([]byte, n*t.Size()), v.list(p)
	*list = append(*list, t.Stage(buf, n, room))
	return mem.Bytes(room)
}
