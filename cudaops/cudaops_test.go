package cudaops_test

import (
	"os"
	"testing"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
	"gompi/internal/stress"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(child(job))
	}
	cudatest.Use("testdata/twice.cu")
	code := m.Run()
	cleanUp()
	os.Exit(code)
}

// device returns cuda:0, and checks at the end that all its memory is free again.
// A real driver keeps some, for contexts and kernels.
func device(t testing.TB) *cudaops.Device {
	t.Helper()
	cudatest.Need(t)
	d, err := cudaops.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := d.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if after, _, err := d.Memory(); err != nil || after < before && !cudatest.Real() {
			t.Errorf("%d bytes are free after the test, %d were before (%v)", after, before, err)
		}
	})
	return d
}

// second returns cuda:1, and skips the test where there is one device.
func second(t *testing.T) *cudaops.Device {
	t.Helper()
	device(t)
	devices, err := cudaops.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) < 2 {
		t.Skip("there is one device")
	}
	return devices[1]
}

// A report on tests names their devices.
func TestDevicesOfThisMachine(t *testing.T) {
	device(t)
	all, err := cudaops.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		i := d.Info()
		t.Logf("device %s: %s, %.1f GiB, %d processors, compute capability %d.%d", d.Name(), i.Model,
			float64(i.Memory)/(1<<30), i.Processors, i.Capability[0], i.Capability[1])
	}
}

func TestDeviceIsASpace(t *testing.T) { memtest.Space(t, device(t)) }

func TestOtherDevicesAreSpaces(t *testing.T) {
	stress.Long(t, "one device is enough")
	memtest.Space(t, second(t))
}

func TestDevicesAreWhatTheDriverSays(t *testing.T) {
	cudatest.NeedFake(t)
	d := device(t)
	i := d.Info()
	if i.Model != "fake GPU" || i.Bus != "0000:01:00.0" || i.Memory != 4<<30 || i.Capability != [2]int{8, 0} ||
		i.Processors != 4 {
		t.Errorf("device 0 is %+v", i)
	}
	if again, err := cudaops.Open(0); again != d || err != nil {
		t.Errorf("Open returned %p and then %p (%v): want one Device", d, again, err)
	}
	if _, err := cudaops.Open(2); err == nil || err.Error() != "no device cuda:2: want 0 to 1" {
		t.Errorf("Open(2): %v", err)
	}
	if all, err := cudaops.Devices(); len(all) != 2 || all[1].Name() != "cuda:1" || err != nil {
		t.Errorf("devices %v (%v): want two", all, err)
	}
}

func TestVectorsHoldWhatWasCopiedThere(t *testing.T) {
	d := device(t)
	v, err := cudaops.Upload(d, []float32{1, 2, 3, 4, 5})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Free()
	if err := v.Slice(1, 3).CopyFrom([]float32{20, 30}); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, v.Len())
	if err := v.CopyTo(got); err != nil {
		t.Fatal(err)
	}
	if want := [5]float32{1, 20, 30, 4, 5}; [5]float32(got) != want {
		t.Errorf("the vector holds %v, want %v", got, want)
	}
	if b := v.Buffer(); b.Space() != mem.Space(d) || b.Type() != mem.F32 || b.Len() != 5 {
		t.Errorf("its buffer is %d elements of %v in %s", b.Len(), b.Type(), b.Space().Name())
	}
	if err := v.CopyTo(got[:2]); err == nil {
		t.Error("copying five elements to two returned no error")
	}
}

// Calls for every message and chunk take no memory of Go.
func TestCopiesTakeNoMemory(t *testing.T) {
	d := device(t)
	a, host := upload(t, d, []float32{1, 2, 3}), mem.Of(make([]float32, 3))
	must(t, d.Copy(host, a))
	if n := testing.AllocsPerRun(100, func() { must(t, d.Copy(host, a)) }); n > 0 {
		t.Errorf("a copy: %v allocations", n)
	}
}
