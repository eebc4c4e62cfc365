package mem

import (
	"strings"
	"testing"
)

func TestElementsOfAnySize(t *testing.T) {
	memory := make([]byte, 60)
	six := HostElements(6, 9, memory)
	if six.Type() != Opaque || six.ElemSize() != 6 || six.Len() != 9 || six.Size() != 54 || !six.IsHost() {
		t.Errorf("%d elements of %v, of %d bytes", six.Len(), six.Type(), six.ElemSize())
	}
	if b := six.Slice(2, 5); b.Addr() != six.Addr()+12 || b.Size() != 18 {
		t.Errorf("elements 2 to 4 are %d bytes, %d behind", b.Size(), b.Addr()-six.Addr())
	}
	if b := Bytes(memory).As(six); !Alike(b, six) || b.Len() != 10 {
		t.Errorf("60 bytes are %d elements of %d bytes", b.Len(), b.ElemSize())
	}
	if b := HostLike(six, 10, memory); !Alike(b, six) || b.Len() != 10 {
		t.Errorf("%d elements of %d bytes, want 10 of 6", b.Len(), b.ElemSize())
	}
	if twelve := HostElements(12, 4, memory); Same(twelve, HostElements(6, 4, memory)) || Alike(twelve, six) {
		t.Error("elements of 6 and 12 bytes are the same")
	}
	if !Same(six, HostElements(6, 9, memory)) {
		t.Error("the same elements differ")
	}
	if n := testing.AllocsPerRun(10, func() { HostElements(6, 9, memory) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	if err := Reduce(Sum, six, six, six); err == nil ||
		!strings.Contains(err.Error(), "sum is not defined for opaque") {
		t.Errorf("a sum of elements without a type: %v", err)
	}
}

func TestElementsThatMemoryCannotHold(t *testing.T) {
	memory := make([]byte, 60)
	for name, f := range map[string]func(){
		"61 bytes":            func() { HostElements(61, 1, memory) },
		"11 of 6 bytes":       func() { HostElements(6, 11, memory) },
		"-1":                  func() { HostElements(6, -1, memory) },
		"no size":             func() { HostElements(0, 1, memory) },
		"11 like those":       func() { HostLike(HostElements(6, 1, memory), 11, memory) },
		"without a size":      func() { HostBytes(Opaque, 1, memory) },
		"like those of none":  func() { HostLike(Buffer{}, 1, memory) },
		"larger than MaxElem": func() { HostElements(MaxElement+1, 0, memory) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	if _, err := Host.Alloc(Opaque, 1); err == nil {
		t.Error("elements without a size are allocated")
	}
}

func TestNumbersOfElementsFitIntoAWord(t *testing.T) {
	for _, size := range []int{1, 2, 3, 6, 255, 256, 1 << 20, MaxElement} {
		for _, n := range []int{0, 1, 7, 1 << 10, (1<<48 - 1) / size} {
			if gotN, gotSize := UnpackElements(PackElements(n, size)); gotN != n || gotSize != size {
				t.Errorf("%d elements of %d bytes come as %d of %d", n, size, gotN, gotSize)
			}
		}
	}
	if n, size := UnpackElements(1<<64 - 1); n < 0 || size < 0 { // a frame may bring any word
		t.Errorf("the largest word is %d elements of %d bytes", n, size)
	}
}
