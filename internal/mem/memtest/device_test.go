package memtest_test

import (
	"testing"

	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

func TestDeviceIsASpace(t *testing.T) {
	d := memtest.NewDevice("gpu")
	memtest.Space(t, d)
	if n := d.InUse(); n != 0 {
		t.Errorf("%d allocations are left", n)
	}
}

func TestDeviceMemoryIsGoneAfterFree(t *testing.T) {
	d := memtest.NewDevice("gpu")
	b, err := d.Alloc(mem.U8, 8)
	if err != nil {
		t.Fatal(err)
	}
	d.Free(b)
	if err := mem.Copy(b, mem.Bytes(make([]byte, 8))); err == nil {
		t.Error("Copy to freed memory returned no error")
	}
}
