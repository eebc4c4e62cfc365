package cudaops_test

import (
	"errors"
	"strings"
	"testing"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// Whatever the driver refuses, the error names the device, the operation, the driver's function,
// the code by name and number, and the driver's text; and no memory is lost.
func TestErrorsNameTheStatusOfTheDriver(t *testing.T) {
	cudatest.NeedFake(t)
	d := device(t)
	a, b := upload(t, d, []float32{1, 2}), upload(t, d, []float32{3, 4})
	s, twice := newStream(t, d), twiceOn(t, d)
	for _, c := range []struct {
		call string
		code string
		do   func() error
		want string
	}{
		{"cuMemAlloc_v2", "2", func() error { _, err := d.Alloc(mem.F32, 10); return err },
			"cuda:0: alloc of 10 float32: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{"cuMemsetD8Async", "999", func() error { _, err := d.Alloc(mem.I8, 10000); return err },
			"cuda:0: alloc of 10000 int8: cuMemsetD8Async: CUDA_ERROR_UNKNOWN (999): unknown error"},
		{"cuMemAllocHost_v2", "2", func() error { _, err := d.AllocHost(mem.F64, 3); return err },
			"cuda:0: alloc of 3 float64 of pinned host memory: cuMemAllocHost_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{"cuMemcpyAsync", "1", func() error { return d.Copy(a, b) },
			"cuda:0: copy of 8 bytes from cuda:0 to cuda:0: cuMemcpyAsync: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
		{"cuMemcpyAsync", "700", func() error { return d.Copy(mem.Of(make([]float32, 2)), b) },
			"cuda:0: copy of 8 bytes from cuda:0 to host: cuMemcpyAsync: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"},
		{"cuLaunchKernel", "719", func() error { return twice(s, a) },
			"cuda:0: launch: cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure"},
		{"cuEventRecord", "400", func() error { return d.Copy(a, b) },
			"cuda:0: copy of 8 bytes from cuda:0 to cuda:0: cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400): invalid resource handle"},
		{"cuStreamCreate", "2", func() error { _, err := d.NewStream(); return err },
			"cuda:0: new stream: cuStreamCreate: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{"cuEventCreate", "2", func() error { _, err := d.NewStream(); return err },
			"cuda:0: new event: cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"},
		{"cuEventQuery", "719", s.Sync, // not cuStreamSynchronize, which may spin
			"cuda:0: stream: cuEventQuery: CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure"},
		{"cuCtxSetCurrent", "4711", func() error { return d.Copy(a, b) },
			"cuda:0: copy of 8 bytes from cuda:0 to cuda:0: cuCtxSetCurrent: unknown error (4711): no description"},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Setenv("FAKECUDA_FAIL", c.call+":1="+c.code)
			err := c.do()
			var driver *cudaops.Error
			if !errors.As(err, &driver) || driver.Call != c.call || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			t.Setenv("FAKECUDA_FAIL", "")
			if err := d.Copy(a, b); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestArgumentsAreCheckedBeforeTheDriverSeesThem(t *testing.T) {
	cudatest.NeedFake(t)
	d, other := device(t), second(t)
	a, far := upload(t, d, []float32{1, 2}), upload(t, other, []float32{1, 2})
	for want, err := range map[string]error{
		"8 bytes in cuda:1: want memory of cuda:0": newStream(t, d).Clear(far),
		"8 bytes to a buffer of 4":                 d.Copy(a.Slice(0, 1), a),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := d.Copy(a, far); err != nil {
		t.Errorf("copy between devices: %v", err)
	}
}

func TestFreeOfWhatIsNotAllocatedPanics(t *testing.T) {
	d := device(t)
	b, err := d.Alloc(mem.U8, 100)
	must(t, err)
	free := func(what string, b mem.Buffer) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("freeing %s did not panic", what)
			}
		}()
		d.Free(b)
	}
	free("a part of a buffer", b.Slice(1, 2))
	d.Free(b)
	free("a buffer that is free", b)
}
