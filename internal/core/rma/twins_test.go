package rma

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/internal/core/lease"
	"gompi/internal/mem"
	"gompi/mpi/libmpi/twins"
)

// accessed is a window, and the operands of accesses: struct access of C.
var accessed struct{ there, in, out, compared [8]uint64 }

// An access is a function on n bytes of the window, from byte at on.
type access struct {
	name    string
	most    int // elements
	inGo    func(w *Window, at, n int, how How) error
	aligned bool               // C refuses others
	inC     func(how How) bool // what C combines
}

// accesses are by the numbers that C has of them.
var accesses = []access{
	{"put", 4, func(w *Window, at, n int, how How) error {
		return w.PutRun(0, at, operand(&accessed.in, n))
	}, false, anything},
	{"get", 4, func(w *Window, at, n int, how How) error {
		return w.GetRun(0, at, operand(&accessed.out, n))
	}, false, anything},
	{"accumulate", 4, func(w *Window, at, n int, how How) error {
		return w.Accumulate(Run(0, at, n), operand(&accessed.in, n), how, nil)
	}, true, combines},
	{"get_accumulate", 4, func(w *Window, at, n int, how How) error {
		return w.GetAccumulate(Run(0, at, n), operand(&accessed.in, n), operand(&accessed.out, n), how, nil)
	}, true, combines},
	{"fetch_and_op", 1, func(w *Window, at, n int, how How) error {
		return w.FetchAndOp(0, at, operand(&accessed.in, n), operand(&accessed.out, n), how)
	}, true, combines},
	{"compare_and_swap", 1, func(w *Window, at, n int, how How) error {
		in, want := operand(&accessed.in, n), operand(&accessed.compared, n)
		return w.CompareAndSwap(0, at, in, want, operand(&accessed.out, n), how)
	}, true, func(how How) bool { return isInteger(how.Type) }},
}

func operand(words *[8]uint64, n int) mem.Buffer {
	return mem.Bytes(unsafe.Slice((*byte)(unsafe.Pointer(words)), n))
}

func anything(How) bool { return true }

func combines(how How) bool {
	return how.Type != mem.U32 && how.Type != mem.U64 || how.Op == mem.Sum || how.Op == Replace || how.Op == Fetch
}

// inC are the operators as C knows them: MPI's numbers of the last two.
var inC = map[mem.Op]uint64{
	mem.Sum: uint64(mem.Sum), mem.Prod: uint64(mem.Prod), mem.Min: uint64(mem.Min), mem.Max: uint64(mem.Max),
	Replace: 60, Fetch: 61,
}

// Elements of a window are put, got and combined at random, in Go and in C, aligned or not.
func TestAccessesToWindowsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	here := lease.Part{Here: uintptr(unsafe.Pointer(&accessed)), Size: 64, Unit: 1, Direct: true, Shared: true}
	w := &Window{parts: []part{{Part: &here}}}
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&accessed)), unsafe.Sizeof(accessed))
	done := map[string]int{}
	for i := range 6000 {
		number := r.IntN(len(accesses))
		f, op := &accesses[number], pick(r, mem.Sum, mem.Prod, mem.Min, mem.Max, Replace, Fetch)
		how := Of(op, pick(r, mem.I32, mem.I64, mem.U32, mem.U64, mem.F32, mem.F64))
		count, at := 1+r.IntN(f.most), r.IntN(66)-1
		if r.IntN(4) > 0 {
			at = at / 8 * 8
		}
		n := count * how.Size
		fill(memory, how.Type, r)
		if at >= 0 && at+n <= 64 && r.IntN(2) == 0 {
			copy(operand(&accessed.compared, n).HostSlice(), memory[at:at+n])
		}
		before, afterC := bytes.Clone(memory), bytes.Clone(memory)
		may := at >= 0 && at+n <= 64 && (!f.aligned || at%how.Size == 0) && f.inC(how)
		args := []uint64{uint64(number), uint64(how.Type), uint64(how.Size), inC[op], uint64(count), uint64(at)}
		did := c.Call("access", afterC, args...) != 0
		if may {
			if err := f.inGo(w, at, n, how); err != nil {
				t.Fatal(err)
			}
		}
		if did != may || !bytes.Equal(afterC, memory) {
			t.Fatalf("step %d, %s of %d %v by %v at byte %d of\n%x: C does it: %v, want %v; Go leaves\n%x, C\n%x",
				i, f.name, count, how.Type, how.Op, at, before, did, may, memory, afterC)
		}
		if !bytes.Equal(before[:64], memory[:64]) {
			done[f.name]++
		}
	}
	if len(done) != len(accesses)-1 {
		t.Errorf("%v have changed the window: want all but get", done)
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// fill stores elements, of which all combinations are numbers.
func fill(b []byte, t mem.Type, r *rand.Rand) {
	for i := 0; i < len(b); i += t.Size() {
		switch t {
		case mem.F32:
			binary.NativeEndian.PutUint32(b[i:], math.Float32bits(float32(r.NormFloat64())))
		case mem.F64:
			binary.NativeEndian.PutUint64(b[i:], math.Float64bits(r.NormFloat64()))
		case mem.I32, mem.U32:
			binary.NativeEndian.PutUint32(b[i:], r.Uint32())
		default:
			binary.NativeEndian.PutUint64(b[i:], r.Uint64())
		}
	}
}
