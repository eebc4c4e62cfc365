package cudaops_test

import (
	"math/rand/v2"
	"testing"

	"gompi/cudaops"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// An arena is equal blocks in one allocation of a device and, the same, in host
// memory.
type arena struct {
	t            *testing.T
	device, host mem.Buffer
	block        int // bytes
}

// The blocks leave room for a vector before and after their elements.
func newArena(t *testing.T, d *cudaops.Device, blocks, bytes int) *arena {
	a := &arena{t: t, block: bytes + 32}
	var err error
	if a.device, err = d.Alloc(mem.U8, blocks*a.block); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Free(a.device) })
	a.host = mem.Bytes(make([]byte, blocks*a.block))
	return a
}

// elements returns n elements of typ in block i, offset bytes from its start.
func (a *arena) elements(i, offset int, typ mem.Type, n int) (device, host mem.Buffer) {
	at := i*a.block + offset
	host = mem.HostBytes(typ, n, a.host.HostSlice()[at:])
	return mem.Device(a.device.Space(), a.device.Addr()+uintptr(at), typ, n), host
}

// Every kernel gives what the host's gives: for every type and operator, for few
// and for many operands, whether vectors are aligned in all, in none or in each
// differently, into memory of its own and into operands. What lies around stays.
func TestEveryKernelAgreesWithTheHost(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "0")
	const most = 20
	a := newArena(t, d, most+1, 16*301)
	for op := mem.Sum; op < mem.Custom; op++ {
		for typ := mem.NoType + 1; typ.Valid(); typ++ {
			if !op.Defined(typ) {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
			for _, k := range []int{1, 2, 3, 8, 9, most} {
				for _, n := range []int{1, 17, 301} {
					a.reduce(r, op, typ, k, n, r.IntN(3))
				}
			}
		}
	}
}

// The same for vectors that take a thread several turns: of all types, and of some so
// long that the device has not the threads to do it in one.
func TestEveryLongReductionAgreesWithTheHost(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "0")
	const n = 20011
	a := newArena(t, d, 10, 16*n)
	for op := mem.Sum; op < mem.Custom; op++ {
		for typ := mem.NoType + 1; typ.Valid(); typ++ {
			if op == mem.Avg || !op.Defined(typ) {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
			a.reduce(r, op, typ, 2+7*r.IntN(2), n, r.IntN(3))
		}
	}
	threads := d.Info().Processors * 2048
	for _, typ := range []mem.Type{mem.F32, mem.BF16, mem.I8} {
		n := (2*threads+1)*16/typ.Size() + 3
		a := newArena(t, d, 3, n*typ.Size())
		for shift := range 2 {
			a.reduce(rand.New(rand.NewPCG(5, uint64(typ))), mem.Sum, typ, 2, n, shift)
		}
	}
}

// reduce compares one reduction. shift is how many elements operand i is moved
// from where vectors are aligned: none, one, or i.
func (a *arena) reduce(r *rand.Rand, op mem.Op, typ mem.Type, k, n, shift int) {
	a.t.Helper()
	var device, host []mem.Buffer
	for i := range k + 1 {
		offset := []int{0, typ.Size(), i * typ.Size()}[shift] % 16
		d, h := a.elements(i, offset, typ, n)
		copy(h.HostSlice(), memtest.Operand(r, typ, n).HostSlice())
		device, host = append(device, d), append(host, h)
	}
	to := r.IntN(k + 1)
	if err := mem.Copy(a.device, a.host); err != nil {
		a.t.Fatal(err)
	}
	if err := a.device.Space().Reduce(op, device[to], device[:k]...); err != nil {
		a.t.Fatalf("%v of %d operands of %d %v: %v", op, k, n, typ, err)
	}
	if err := mem.Host.Reduce(op, host[to], host[:k]...); err != nil {
		a.t.Fatal(err)
	}
	got := mem.Bytes(make([]byte, a.host.Size()))
	if err := mem.Copy(got, a.device); err != nil {
		a.t.Fatal(err)
	}
	at := int(device[to].Addr() - a.device.Addr())
	result := mem.HostBytes(typ, n, got.HostSlice()[at:])
	if !memtest.Equal(result, host[to]) {
		a.t.Fatalf("%v of %d operands of %d %v into %d, shifted %d: device\n%x, host\n%x",
			op, k, n, typ, to, shift, result.HostSlice(), host[to].HostSlice())
	}
	copy(result.HostSlice(), host[to].HostSlice()) // NaN may differ
	if string(got.HostSlice()) != string(a.host.HostSlice()) {
		a.t.Fatalf("%v of %d operands of %d %v into %d changed what is around it", op, k, n, typ, to)
	}
}

// Every type is divided as on the host, from any alignment.
func TestEveryDivisionAgreesWithTheHost(t *testing.T) {
	d := device(t)
	a := newArena(t, d, 1, 16*301)
	r := rand.New(rand.NewPCG(7, 7))
	for typ := mem.NoType + 1; typ.Valid(); typ++ {
		if !mem.Avg.Defined(typ) {
			continue
		}
		for _, by := range []int{1, 3, 8, 1000} {
			device, host := a.elements(0, typ.Size()*r.IntN(2), typ, 301)
			copy(host.HostSlice(), memtest.Operand(r, typ, 301).HostSlice())
			if err := mem.Copy(a.device, a.host); err != nil {
				t.Fatal(err)
			}
			if err := d.Divide(device, by); err != nil {
				t.Fatal(err)
			}
			if err := mem.Divide(host, by); err != nil {
				t.Fatal(err)
			}
			got := mem.HostBytes(typ, 301, make([]byte, device.Size()))
			if err := mem.Copy(got, device); err != nil || !memtest.Equal(got, host) {
				t.Fatalf("%v by %d: device\n%x, host\n%x (%v)", typ, by, got.HostSlice(), host.HostSlice(), err)
			}
		}
	}
}

// What is called for every message and chunk takes no memory.
func TestWorkTakesNoMemoryOfGo(t *testing.T) {
	d := device(t)
	a, b := upload(t, d, []float32{1, 2, 3}), upload(t, d, []float32{1, 2, 3})
	host := mem.Of(make([]float32, 3))
	srcs := []mem.Buffer{a, b, a, b}
	for what, f := range map[string]func() error{
		"copy":   func() error { return d.Copy(host, a) },
		"reduce": func() error { return d.Reduce(mem.Max, a, srcs...) },
		"divide": func() error { return d.Divide(a, 3) },
	} {
		must(t, f())
		if n := testing.AllocsPerRun(100, func() { must(t, f()) }); n > 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
