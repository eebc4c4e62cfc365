package mem

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/mpi/libmpi/twins"
)

// All that C combines is combined by Go's kernels alike, to the bit; of NaNs any is as good.
func TestReductionsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range []Type{I32, I64, F32, F64} {
		for _, op := range []Op{Sum, Prod, Min, Max} {
			for n := range 70 {
				size := n * typ.Size()
				words := make([]uint64, 3*(size+7)/8)
				inGo := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 3*size)
				for i := range 2 * n {
					storeOperand(inGo[size+i*typ.Size():], typ, r)
				}
				inC := bytes.Clone(inGo)
				part := func(i int) Buffer { return HostBytes(typ, n, inGo[i*size:(i+1)*size]) }
				if err := Reduce(op, part(0), part(1), part(2)); err != nil {
					t.Fatal(err)
				}
				c.Call("mem_reduce", inC, uint64(typ), uint64(op), uint64(n), uint64(size))
				for i := 0; i < size; i += typ.Size() {
					if g, c := inGo[i:i+typ.Size()], inC[i:i+typ.Size()]; !bytes.Equal(g, c) &&
						!(isNaN(g, typ) && isNaN(c, typ)) {
						t.Fatalf("%v of %v, element %d of %d: Go has %x, C %x", op, typ, i/typ.Size(), n, g, c)
					}
				}
			}
		}
	}
}

// storeOperand stores an element of 4 or 8 bytes: any bits, a small number, or a number that is
// compared in a way of its own.
func storeOperand(b []byte, t Type, r *rand.Rand) {
	x := []float64{r.NormFloat64(), 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}[r.IntN(6)]
	bits := r.Uint64()
	if r.IntN(2) == 0 && t == F32 {
		bits = uint64(math.Float32bits(float32(x)))
	} else if r.IntN(2) == 0 && t == F64 {
		bits = math.Float64bits(x)
	}
	if t.Size() == 4 {
		binary.NativeEndian.PutUint32(b, uint32(bits))
	} else {
		binary.NativeEndian.PutUint64(b, bits)
	}
}

func isNaN(b []byte, t Type) bool {
	if t == F32 {
		return math.IsNaN(float64(math.Float32frombits(binary.NativeEndian.Uint32(b))))
	}
	return t == F64 && math.IsNaN(math.Float64frombits(binary.NativeEndian.Uint64(b)))
}
