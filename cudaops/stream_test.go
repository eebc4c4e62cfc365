package cudaops_test

import (
	_ "embed"
	"strings"
	"testing"
	"unsafe"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
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

// Slow streams show whether work waits for its predecessors: a chain over two streams and an event,
// and the host at its end.
func TestWorkOfStreamsIsOrderedByEvents(t *testing.T) {
	d := device(t)
	t.Setenv("FAKECUDA_DELAY", "2000")
	first, second := newStream(t, d), newStream(t, d)
	ready, err := d.NewEvent()
	must(t, err)
	defer ready.Close()
	in, out := pinned[float32](t, d, 1000), pinned[float32](t, d, 1000)
	a := upload(t, d, make([]float32, 1000))
	twice := twiceOn(t, d)
	for round := range int32(20) {
		for i := range in {
			in[i] = float32(round) + float32(i)
		}
		must(t, first.Copy(a, mem.Of(in)))
		must(t, twice(first, a))
		must(t, ready.Record(first))
		must(t, second.Wait(ready))
		must(t, twice(second, a))
		must(t, second.Copy(mem.Of(out), a))
		must(t, second.Sync())
		if done, err := ready.Done(); !done || err != nil {
			t.Fatalf("round %d: what was waited for is not done (%v)", round, err)
		}
		for i := range out {
			if want := 4 * in[i]; out[i] != want {
				t.Fatalf("round %d: element %d is %v, want %v", round, i, out[i], want)
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
	in, a, b := pinned[int32](t, d, 20), upload(t, d, make([]int32, 20)), upload(t, d, make([]int32, 20))
	for i := range in {
		in[i] = int32(i + 1)
	}
	for i := range in {
		must(t, first.Copy(a.Slice(i, i+1), mem.Of(in).Slice(i, i+1)))
		must(t, ready.Record(first))
		must(t, second.Wait(ready))
		must(t, second.Copy(b.Slice(i, i+1), a.Slice(i, i+1)))
	}
	must(t, second.Sync())
	must(t, mem.Copy(mem.Of(in), b))
	for i, v := range in {
		if want := int32(i + 1); v != want {
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
	must(t, s.Clear(a))
	must(t, e.Record(s))
	must(t, e.Sync())
	if done, err := e.Done(); !done || err != nil {
		t.Errorf("an event that was waited for is not done (%v)", err)
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

// twice is the kernel of testdata/twice.cu.
//
//go:embed testdata/twice_sm75.ptx
var twice string

// twiceOn returns a function that puts the doubling of a buffer of float32 on a stream of d.
func twiceOn(t testing.TB, d *cudaops.Device) func(*cudaops.Stream, mem.Buffer) error {
	t.Helper()
	m, err := d.LoadPTX(twice)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	k, err := m.Kernel("twice")
	if err != nil {
		t.Fatal(err)
	}
	return func(s *cudaops.Stream, b mem.Buffer) error { return launchTwice(s, k, b) }
}

func launchTwice(s *cudaops.Stream, k cudaops.Kernel, b mem.Buffer) error {
	args := struct{ data, n uint64 }{uint64(b.Addr()), uint64(b.Len())}
	return cudaops.Launch(s, k, 2, 32, &args)
}

func TestPTXIsWhatTheSourceGives(t *testing.T) {
	cudatest.CheckPTX(t, "testdata/twice_sm75.ptx")
}

// A program's own kernels run on its streams.
func TestKernelsOfOnesOwn(t *testing.T) {
	d := device(t)
	s := newStream(t, d)
	a := upload(t, d, []float32{1, 2, 3, 4, 5})
	must(t, twiceOn(t, d)(s, a.Slice(0, 4)))
	must(t, s.Sync())
	got := make([]float32, 5)
	must(t, mem.Copy(mem.Of(got), a))
	if [5]float32(got) != [5]float32{2, 4, 6, 8, 5} {
		t.Errorf("doubles are %v", got)
	}
	m, err := d.LoadPTX(twice)
	must(t, err)
	defer m.Close()
	if _, err := m.Kernel("nothing"); err == nil ||
		!strings.Contains(err.Error(), "kernel nothing: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)") {
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

// Work put on a Stream before its event was set is done when the event is; later work need not be.
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
			t.Fatalf("round %d: at the event the numbers are %d, %d and %d, want %d, 0 and 0", round, out[9], out[10],
				out[99], round+1)
		}
	}
	if err := s.Clear(mem.Of(out)); err == nil ||
		!strings.Contains(err.Error(), "400 bytes in host: want memory of cuda:0") {
		t.Errorf("clearing host memory on a stream: %v", err)
	}
}
