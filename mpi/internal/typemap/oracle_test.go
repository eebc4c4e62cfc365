package typemap

import (
	"fmt"
	"slices"
	"testing"
)

// An entry of a type map: an element, one of MPI-1's markers, or the end of a part that is padded.
// By the letter of the standard the padding of a part is no part of a type that is made of it. With
// Open MPI and MPICH it is, which differs only where displacements are not aligned.
type entry struct {
	disp   int
	basic  *Basic // nil of others
	marker byte   // 'l', 'u' or 'p'
}

// partsOf has what pairs consist of, and where the second part is.
var partsOf = map[string]struct {
	first, second string
	at            int
}{
	"MPI_FLOAT_INT":         {"MPI_FLOAT", "MPI_INT", 4},
	"MPI_DOUBLE_INT":        {"MPI_DOUBLE", "MPI_INT", 8},
	"MPI_LONG_INT":          {"MPI_LONG", "MPI_INT", 8},
	"MPI_2INT":              {"MPI_INT", "MPI_INT", 4},
	"MPI_SHORT_INT":         {"MPI_SHORT", "MPI_INT", 4},
	"MPI_LONG_DOUBLE_INT":   {"MPI_LONG_DOUBLE", "MPI_INT", 16},
	"MPI_2REAL":             {"MPI_REAL", "MPI_REAL", 4},
	"MPI_2DOUBLE_PRECISION": {"MPI_DOUBLE_PRECISION", "MPI_DOUBLE_PRECISION", 8},
	"MPI_2INTEGER":          {"MPI_INTEGER", "MPI_INTEGER", 4},
	"MPI_2COMPLEX":          {"MPI_COMPLEX", "MPI_COMPLEX", 8},
	"MPI_2DOUBLE_COMPLEX":   {"MPI_DOUBLE_COMPLEX", "MPI_DOUBLE_COMPLEX", 16},
}

// typeMap expands a type by the definitions of the standard, from what it says it was made with.
func typeMap(t *Type) []entry {
	if b := t.Basic(); b != nil {
		return namedMap(b)
	}
	c := t.Contents()
	ints := c.Ints
	var m mapper
	if len(c.Types) > 0 && c.Combiner != StructType {
		m.of(c.Types[0])
	}
	switch c.Combiner {
	case DupType:
		m.add(0, 1)
	case ContiguousType:
		m.add(0, ints[0])
	case VectorType:
		for i := range ints[0] {
			m.add(i*ints[2]*m.extent, ints[1])
		}
	case HvectorType:
		for i := range ints[0] {
			m.add(i*c.Addrs[0], ints[1])
		}
	case IndexedType:
		for i := range ints[0] {
			m.add(ints[1+ints[0]+i]*m.extent, ints[1+i])
		}
	case HindexedType:
		for i := range ints[0] {
			m.add(c.Addrs[i], ints[1+i])
		}
	case IndexedBlockType:
		for i := range ints[0] {
			m.add(ints[2+i]*m.extent, ints[1])
		}
	case HindexedBlockType:
		for i := range ints[0] {
			m.add(c.Addrs[i], ints[1])
		}
	case StructType:
		for i := range ints[0] {
			m.of(c.Types[i])
			m.add(c.Addrs[i], ints[1+i])
		}
	case ResizedType:
		m.add(0, 1)
		m.resize(c.Addrs[0], c.Addrs[0]+c.Addrs[1])
	case SubarrayType:
		m.subarray(ints)
	case DarrayType:
		m.darray(ints)
	default:
		panic("no definition of this combiner")
	}
	return m.out
}

func namedMap(b *Basic) []entry {
	switch b.Name {
	case "MPI_LB":
		return []entry{{marker: 'l'}}
	case "MPI_UB":
		return []entry{{marker: 'u'}}
	}
	if p, ok := partsOf[b.Name]; ok {
		return []entry{{0, Named(p.first).Basic(), 0}, {p.at, Named(p.second).Basic(), 0}}
	}
	return []entry{{0, b, 0}}
}

// A mapper collects copies of a type's map.
type mapper struct {
	child  []entry
	extent int
	out    []entry
}

func (m *mapper) of(t *Type) {
	m.child = typeMap(t)
	lb, ub := bounds(m.child)
	m.extent = ub - lb
	if slices.ContainsFunc(m.child, func(e entry) bool { return e.basic != nil }) {
		m.child = append(m.child, entry{disp: ub, marker: 'p'})
	}
}

func (m *mapper) add(disp, n int) {
	for i := range n {
		for _, e := range m.child {
			e.disp += disp + i*m.extent
			m.out = append(m.out, e)
		}
	}
}

func (m *mapper) resize(lb, ub int) {
	m.out = slices.DeleteFunc(m.out, func(e entry) bool { return e.basic == nil })
	m.out = append(m.out, entry{disp: lb, marker: 'l'}, entry{disp: ub, marker: 'u'})
}

// array adds the elements of an array of which has says that they are wanted, the first index
// running slowest, or fastest in Fortran's order.
func (m *mapper) array(sizes []int, order int, has func(index []int) bool) {
	all := 1
	for _, s := range sizes {
		all *= s
	}
	index := make([]int, len(sizes))
	for at := range all {
		rest := at
		for k := range sizes {
			if order == OrderC {
				k = len(sizes) - 1 - k
			}
			index[k], rest = rest%sizes[k], rest/sizes[k]
		}
		if has(index) {
			m.add(at*m.extent, 1)
		}
	}
	m.resize(0, all*m.extent)
}

func (m *mapper) subarray(ints []int) {
	n := ints[0]
	sizes, subsizes, starts := ints[1:1+n], ints[1+n:1+2*n], ints[1+2*n:1+3*n]
	m.array(sizes, ints[1+3*n], func(index []int) bool {
		for k, i := range index {
			if i < starts[k] || i >= starts[k]+subsizes[k] {
				return false
			}
		}
		return true
	})
}

func (m *mapper) darray(ints []int) {
	rank, n := ints[1], ints[2]
	part := func(i int) []int { return ints[3+i*n : 3+(i+1)*n] }
	sizes, kinds, args, procs := part(0), part(1), part(2), part(3)
	place := make([]int, n) // of the rank in the grid, always in C's order
	for k, rest := n-1, rank; k >= 0; k-- {
		place[k], rest = rest%procs[k], rest/procs[k]
	}
	m.array(sizes, ints[3+4*n], func(index []int) bool {
		for k, i := range index {
			block := args[k]
			switch {
			case kinds[k] == DistributeNone:
				block = sizes[k]
			case block == DistributeDefault && kinds[k] == DistributeBlock:
				block = (sizes[k] + procs[k] - 1) / procs[k]
			case block == DistributeDefault:
				block = 1
			}
			if i/block%procs[k] != place[k] {
				return false
			}
		}
		return true
	})
}

// bounds are those of the standard.
func bounds(m []entry) (lb, ub int) {
	var lows, highs, lowMarks, highMarks []int
	align := 1
	for _, e := range m {
		switch e.marker {
		case 'l':
			lowMarks = append(lowMarks, e.disp)
		case 'u':
			highMarks = append(highMarks, e.disp)
		case 'p':
			highs = append(highs, e.disp)
		default:
			lows, highs = append(lows, e.disp), append(highs, e.disp+e.basic.Size)
			align = max(align, e.basic.Align)
		}
	}
	if len(highMarks) > 0 {
		ub = slices.Max(highMarks)
	} else if len(highs) > 0 {
		ub = slices.Max(highs)
	}
	switch {
	case len(lowMarks) > 0:
		lb = slices.Min(lowMarks)
	case len(lows) > 0:
		lb = slices.Min(lows)
	default:
		lb = min(0, ub) // without data the standard says nothing
	}
	if len(highs)+len(highMarks) == 0 {
		ub = max(0, lb)
	}
	for len(highMarks) == 0 && (ub-lb)%align != 0 {
		ub++
	}
	return lb, ub
}

// trueBounds are those of the data.
func trueBounds(m []entry) (lo, hi int) {
	first := true
	for _, e := range m {
		if e.basic == nil {
			continue
		}
		if first {
			lo, hi, first = e.disp, e.disp+e.basic.Size, false
		}
		lo, hi = min(lo, e.disp), max(hi, e.disp+e.basic.Size)
	}
	return lo, hi
}

// places lists where each packed byte of n elements is, from the base on.
func places(m []entry, n int) (bytes []int) {
	lb, ub := bounds(m)
	for i := range n {
		for _, e := range m {
			if e.basic == nil {
				continue
			}
			for k := range e.basic.Size {
				bytes = append(bytes, i*(ub-lb)+e.disp+k)
			}
		}
	}
	return bytes
}

// A maker makes types by what bytes tell it, so that a fuzzer can lead it.
type maker struct{ data []byte }

// pick returns a number below n.
func (m *maker) pick(n int) int {
	if len(m.data) == 0 {
		return 0
	}
	k := int(m.data[0]) % n
	m.data = m.data[1:]
	return k
}

func (m *maker) list(n, from, to int) []int {
	l := make([]int, n)
	for i := range l {
		l[i] = from + m.pick(to-from+1)
	}
	return l
}

var usual = []string{"MPI_INT", "MPI_CHAR", "MPI_DOUBLE", "MPI_SHORT", "MPI_DOUBLE_INT", "MPI_C_DOUBLE_COMPLEX",
	"MPI_SHORT_INT",
	"MPI_LONG", "MPI_LB", "MPI_UB", "MPI_2INT", "MPI_LONG_DOUBLE_INT"}

// make returns a type with nested constructors, and whether it is small enough to be expanded.
func (m *maker) make(tb testing.TB, depth int) *Type {
	if depth == 0 || m.pick(5) == 4 {
		return Named(usual[m.pick(len(usual))])
	}
	child := m.make(tb, depth-1)
	t, err := m.derive(tb, child, depth)
	if err != nil {
		tb.Fatal(err)
	}
	lo, extent := t.TrueExtent()
	if t.Size() > 3000 || abs(lo)+abs(extent)+2*abs(t.Extent())+abs(t.Lb()) > reach {
		return child
	}
	return t
}

const reach = 20000

func (m *maker) derive(tb testing.TB, of *Type, depth int) (*Type, error) {
	n := m.pick(4)
	switch m.pick(12) {
	case 0:
		return Contiguous(n, of)
	case 1:
		return Vector(n, m.pick(4), m.pick(9)-3, of)
	case 2:
		return Hvector(n, m.pick(4), m.pick(60)-20, of)
	case 3:
		return Indexed(m.list(n, 0, 3), m.list(n, -3, 9), of)
	case 4:
		return Hindexed(m.list(n, 0, 3), m.list(n, -30, 60), of)
	case 5:
		return IndexedBlock(m.pick(3), m.list(n, -3, 9), of)
	case 6:
		return HindexedBlock(m.pick(3), m.list(n, -30, 60), of)
	case 7:
		return Resized(of, m.pick(40)-20, m.pick(60)-10)
	case 8:
		return Dup(of)
	case 9:
		d := 1 + m.pick(3)
		sizes := m.list(d, 1, 5)
		starts, subsizes := make([]int, d), make([]int, d)
		for i, s := range sizes {
			subsizes[i] = 1 + m.pick(s)
			starts[i] = m.pick(s - subsizes[i] + 1)
		}
		return Subarray(sizes, subsizes, starts, OrderC+3*m.pick(2), of)
	case 10:
		return m.darray(of)
	}
	types := []*Type{of}
	for range n {
		types = append(types, m.make(tb, depth-1))
	}
	return Struct(m.list(len(types), 0, 2), m.list(len(types), -30, 90), types)
}

func (m *maker) darray(of *Type) (*Type, error) {
	d := 1 + m.pick(3)
	sizes, kinds, procs := m.list(d, 1, 6), m.list(d, DistributeNone, DistributeCyclic), m.list(d, 1, 3)
	args, ranks := make([]int, d), 1
	for i, s := range sizes {
		args[i] = DistributeDefault
		switch kinds[i] {
		case DistributeNone:
			procs[i] = 1
		case DistributeCyclic:
			args[i] = 1 + m.pick(3)
		default:
			if least := (s + procs[i] - 1) / procs[i]; m.pick(2) == 1 {
				args[i] = least + m.pick(2)
			}
		}
		ranks *= procs[i]
	}
	return Darray(ranks, m.pick(ranks), sizes, kinds, args, procs, OrderC+3*m.pick(2), of)
}

// describe prints a type as the calls that make it.
func describe(t *Type) string {
	if b := t.Basic(); b != nil {
		return b.Name
	}
	var types []string
	for _, of := range t.types {
		types = append(types, describe(of))
	}
	return fmt.Sprint(t.combiner, t.ints, t.addrs, types)
}
