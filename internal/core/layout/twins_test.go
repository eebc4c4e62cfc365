package layout

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"gompi/mpi/libmpi/twins"
)

// Runs of bytes, as columns are, are packed and unpacked in Go and in C, the last in part.
func TestRunsInGoAndC(t *testing.T) {
	c := twins.Start(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		count, run := 1+r.IntN(20), []int{4, 8, 1 + r.IntN(30)}[r.IntN(3)]
		n, stride := count*run, run+r.IntN(10)
		inGo := make([]byte, n+count*stride)
		for i := range inGo {
			inGo[i] = byte(r.Uint32())
		}
		inC := bytes.Clone(inGo)
		l := Loop{Count: count, Each: run, Stride: stride}.Layout()
		packed, base := inGo[:n], uintptr(unsafe.Pointer(&inGo[n]))
		what, args := "pack", []uint64{uint64(run), uint64(stride), uint64(n), uint64(n)}
		if r.IntN(2) == 0 {
			l.Pack(packed, base, 0)
		} else {
			what = "unpack"
			some := r.IntN(n + 1)
			l.Unpack(base, packed[:some], 0)
			args = append(args, uint64(some))
		}
		if c.Call(what, inC, args...); !bytes.Equal(inGo, inC) {
			t.Fatalf("%s of %d runs of %d bytes, %d apart: Go leaves %x, C %x", what, count, run, stride, inGo, inC)
		}
	}
}
