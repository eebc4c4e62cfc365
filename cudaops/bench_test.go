package cudaops_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gompi/cudaops"
	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// The speed of a device, in bytes moved per second, for the thresholds of its users. Nothing is
// measured on the fake driver.

func benchDevice(b *testing.B) *cudaops.Device {
	if !cudatest.Real() {
		b.Skip("there is nothing to measure without a GPU: GOMPI_TEST_GPU=1")
	}
	return device(b)
}

func benchAlloc(b *testing.B, d *cudaops.Device, t mem.Type, n int) mem.Buffer {
	v, err := d.Alloc(t, n)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Free(v) })
	return v
}

// timed runs f b.N times, each of which moves the given bytes.
func timed(b *testing.B, bytes int, f func() error) {
	if err := f(); err != nil {
		b.Fatal(err)
	}
	if bytes > 0 {
		b.SetBytes(int64(bytes))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
}

var benchBytes = []int{4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20}

// BenchmarkCopy is the ceiling: read and written once, within the device, and
// between it and host memory that is pinned or not.
func BenchmarkCopy(b *testing.B) {
	d := benchDevice(b)
	device := func(b *testing.B, n int) mem.Buffer { return benchAlloc(b, d, mem.U8, n) }
	pinned := func(b *testing.B, n int) mem.Buffer {
		v, err := d.AllocHost(mem.U8, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { d.FreeHost(v) })
		return v
	}
	pageable := func(_ *testing.B, n int) mem.Buffer { return mem.Bytes(make([]byte, n)) }
	for _, c := range []struct {
		name     string
		dst, src func(*testing.B, int) mem.Buffer
		also     []int // sizes of collectives beside benchBytes
	}{
		{"device", device, device, []int{64 << 20, 1 << 30}},
		{"to-device-pinned", device, pinned, nil}, {"from-device-pinned", pinned, device, nil},
		{"to-device-pageable", device, pageable, nil}, {"from-device-pageable", pageable, device, nil},
	} {
		for _, n := range slices.Concat(benchBytes, c.also) {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				dst, src := c.dst(b, n), c.src(b, n)
				timed(b, n, func() error { return d.Copy(dst, src) })
			})
		}
	}
}

// BenchmarkLaunch is the time of a small kernel with its wait, and of asking for the place of
// memory.
func BenchmarkLaunch(b *testing.B) {
	d := benchDevice(b)
	x := benchAlloc(b, d, mem.F32, 1)
	b.Run("kernel", func(b *testing.B) {
		s, err := d.NewStream()
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		twice := twiceOn(b, d)
		timed(b, 0, func() error { return errors.Join(twice(s, x), s.Sync()) })
	})
	b.Run("place", func(b *testing.B) {
		s := []float32{1}
		timed(b, 0, func() error { _, err := cudaops.At(pointerTo(s), mem.F32, 1); return err })
	})
}
