package cudaops_test

import (
	"strings"
	"testing"
	"unsafe"

	"gompi/cudaops"
	"gompi/internal/mem"
)

// must ends the test with err, if there is one.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStream(t *testing.T, d *cudaops.Device) *cudaops.Stream {
	t.Helper()
	s, err := d.NewStream()
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func pinned[T mem.Scalar](t *testing.T, d *cudaops.Device, n int) []T {
	t.Helper()
	b, err := d.AllocHost(mem.TypeOf[T](), n)
	must(t, err)
	t.Cleanup(func() { must(t, d.FreeHost(b)) })
	return mem.Slice[T](b)
}

func upload[T mem.Scalar](t *testing.T, d *cudaops.Device, s []T) mem.Buffer {
	t.Helper()
	v, err := cudaops.Upload(d, s)
	must(t, err)
	t.Cleanup(v.Free)
	return v.Buffer()
}

// Streams that dawdle show whether work waits for what it should wait for: a chain
// over two streams and an event, and the host at its end.
func TestWorkOfStreamsIsOrderedByEvents(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "2000")
	first, second := newStream(t, d), newStream(t, d)
	ready, err := d.NewEvent()
	must(t, err)
	defer ready.Close()
	in, out := pinned[float32](t, d, 1000), pinned[float32](t, d, 1000)
	a, b := upload(t, d, make([]float32, 1000)), upload(t, d, make([]float32, 1000))
	for round := range int32(20) {
		for i := range in {
			in[i] = float32(round) + float32(i)
		}
		must(t, first.Copy(a, mem.Of(in)))
		must(t, first.Reduce(mem.Sum, b, a, a, a))
		must(t, ready.Record(first))
		must(t, second.Wait(ready))
		must(t, second.Divide(b, 3))
		must(t, second.Copy(mem.Of(out), b))
		must(t, second.Sync())
		if done, err := ready.Done(); !done || err != nil {
			t.Fatalf("round %d: what was waited for is not done (%v)", round, err)
		}
		for i := range out {
			if out[i] != in[i] {
				t.Fatalf("round %d: element %d is %v, want %v", round, i, out[i], in[i])
			}
		}
	}
}

// An event is recorded anew while another stream still waits for where it was.
func TestEventsAreRecordedAnewWhileAStreamWaits(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "2000")
	first, second := newStream(t, d), newStream(t, d)
	ready, err := d.NewEvent()
	must(t, err)
	defer ready.Close()
	in, a := pinned[int32](t, d, 20), upload(t, d, make([]int32, 20))
	for i := range in {
		in[i] = int32(i + 1)
	}
	for i := range in {
		must(t, first.Copy(a.Slice(i, i+1), mem.Of(in).Slice(i, i+1)))
		must(t, ready.Record(first))
		must(t, second.Wait(ready))
		must(t, second.Reduce(mem.Sum, a.Slice(i, i+1), a.Slice(0, 1), a.Slice(i, i+1)))
	}
	must(t, second.Sync())
	must(t, mem.Copy(mem.Of(in), a))
	for i, v := range in[1:] {
		if want := int32(i + 4); v != want { // i+2 and twice 1
			t.Errorf("element %d is %d, want %d", i, v, want)
		}
	}
}

func TestAnEventIsDoneWhenItsWorkIs(t *testing.T) {
	d := device(t)
	s := newStream(t, d)
	e, err := d.NewEvent()
	must(t, err)
	defer e.Close()
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("an event that was not recorded is not done (%v)", err)
	}
	a := upload(t, d, []float64{1, 2})
	must(t, s.Reduce(mem.Sum, a, a, a))
	must(t, e.Record(s))
	must(t, e.Sync())
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("an event that was waited for is not done (%v)", err)
	}
}

// More operands than a kernel's parameter holds, on a stream and again: the list
// of the second must not overtake the first.
func TestReductionsOfManyOperandsOnAStream(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "500")
	s := newStream(t, d)
	var ones, twos []mem.Buffer
	for range 12 {
		ones = append(ones, upload(t, d, []uint16{1, 1, 1}))
		twos = append(twos, upload(t, d, []uint16{2, 2, 2}))
	}
	a, b := upload(t, d, make([]uint16, 3)), upload(t, d, make([]uint16, 3))
	for range 10 {
		must(t, s.Reduce(mem.Sum, a, ones...))
		must(t, s.Reduce(mem.Sum, b, append(twos, ones...)...))
		must(t, s.Sync())
		got := make([]uint16, 6)
		must(t, mem.Copy(mem.Of(got[:3]), a))
		must(t, mem.Copy(mem.Of(got[3:]), b))
		if [6]uint16(got) != [6]uint16{12, 12, 12, 36, 36, 36} {
			t.Fatalf("sums are %v", got)
		}
	}
}

func TestStreamsRefuseHostMemoryThatIsNotPinned(t *testing.T) {
	d := device(t)
	s := newStream(t, d)
	a := upload(t, d, []int8{1, 2, 3})
	err := s.Copy(mem.Of(make([]int8, 3)), a)
	if err == nil || !strings.Contains(err.Error(), "not pinned") {
		t.Errorf("copy to ordinary memory on a stream: %v", err)
	}
}

func TestAtFindsWhereMemoryIs(t *testing.T) {
	d := device(t)
	a := upload(t, d, []float32{1, 2, 3})
	b, err := cudaops.At(*(*unsafe.Pointer)(unsafe.Pointer(ptr(a.Slice(1, 3).Addr()))), mem.F32, 2)
	must(t, err)
	if !mem.Same(b, a.Slice(1, 3)) {
		t.Errorf("memory of %s was found in %s at %#x", d.Name(), b.Space().Name(), b.Addr())
	}
	for name, s := range map[string][]float32{"ordinary": make([]float32, 3), "pinned": pinned[float32](t, d, 3)} {
		b, err := cudaops.At(unsafe.Pointer(&s[0]), mem.F32, 3)
		must(t, err)
		if !mem.Same(b, mem.Of(s)) {
			t.Errorf("%s memory was found in %s at %#x", name, b.Space().Name(), b.Addr())
		}
	}
}

// ptr returns where an address is stored: the way to a pointer that is not Go's.
func ptr(addr uintptr) *uintptr { return &addr }

// A program's own kernels are launched as cudaops's are.
func TestKernelsOfOnesOwn(t *testing.T) {
	d := device(t)
	m, err := d.LoadPTX(cudaops.PTX)
	must(t, err)
	defer m.Close()
	k, err := m.Kernel("prod_float64")
	must(t, err)
	a := upload(t, d, []float64{1, 2, 3, 4, 5})
	args := struct {
		dst                                             uintptr
		src                                             [8]uintptr
		more, operands, elements, head, vectors, divide uintptr
	}{dst: a.Addr(), src: [8]uintptr{a.Addr(), a.Addr()}, operands: 2, elements: 5, vectors: 2}
	s := newStream(t, d)
	must(t, cudaops.Launch(s, k, 2, 32, &args))
	must(t, s.Sync())
	got := make([]float64, 5)
	must(t, mem.Copy(mem.Of(got), a))
	if [5]float64(got) != [5]float64{1, 4, 9, 16, 25} {
		t.Errorf("squares are %v", got)
	}
	if _, err := m.Kernel("nothing"); err == nil || !strings.Contains(err.Error(), "kernel nothing: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)") {
		t.Errorf("a kernel that is not there: %v", err)
	}
	for text, want := range map[string]string{
		"nonsense":               "CUDA_ERROR_INVALID_IMAGE (200): device kernel image is invalid: ",
		".version 6.3\nnonsense": "CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed: ",
	} {
		if _, err := d.LoadPTX(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, which is not PTX: %v", text, err)
		}
	}
}

func pointerTo(s []float32) unsafe.Pointer { return unsafe.Pointer(&s[0]) }

// What was put on a Stream before its event was set is done when the event is; what
// came after need not be.
func TestEventsAreReachedInTheOrderOfTheWork(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "2000")
	s := newStream(t, d)
	out := pinned[int32](t, d, 100)
	b := upload(t, d, make([]int32, 100))
	m, err := s.NewEvent()
	must(t, err)
	defer m.Close()
	if done, err := m.Done(); !done || err != nil {
		t.Errorf("an event that was never set is done: %v (%v)", done, err)
	}
	for round := range int32(20) {
		for i := range out {
			out[i] = round + 1
		}
		must(t, s.Copy(b, mem.Of(out)))
		must(t, s.Clear(b.Slice(10, 100)))
		must(t, s.Copy(mem.Of(out), b))
		must(t, m.Set())
		if round%2 == 0 {
			must(t, m.Wait())
		}
		for done := false; !done; {
			done, err = m.Done()
			must(t, err)
		}
		if out[9] != round+1 || out[10] != 0 || out[99] != 0 {
			t.Fatalf("round %d: at the event the numbers are %d, %d and %d, want %d, 0 and 0", round, out[9], out[10], out[99], round+1)
		}
	}
	if err := s.Clear(mem.Of(out)); err == nil || !strings.Contains(err.Error(), "400 bytes in host: want memory of cuda:0") {
		t.Errorf("clearing host memory on a stream: %v", err)
	}
}
