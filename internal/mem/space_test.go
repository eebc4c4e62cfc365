package mem_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

func TestHostIsASpace(t *testing.T) { memtest.Space(t, mem.Host) }

// The functions find the Space by its Buffers.

func TestFunctionsWorkInTheSpaceOfTheirBuffers(t *testing.T) {
	d := memtest.NewDevice("gpu")
	host := []float32{1, 2, 3}
	a := upload(t, d, host)
	b := upload(t, d, make([]float32, 3))
	clear(host)
	if err := errors.Join(mem.Copy(b, a), mem.Copy(mem.Of(host), b)); err != nil {
		t.Fatal(err)
	}
	if want := []float32{1, 2, 3}; !slices.Equal(host, want) {
		t.Errorf("a copy of a copy has %v, want %v", host, want)
	}
}

func TestFunctionsRejectBuffersOfDifferentSpaces(t *testing.T) {
	one, two := memtest.NewDevice("gpu:1"), memtest.NewDevice("gpu:2")
	host := mem.Of(make([]float32, 3))
	a, b := upload(t, one, []float32{1, 2, 3}), upload(t, two, []float32{4, 5, 6})
	for name, err := range map[string]error{
		"copy":                   mem.Copy(a, b),
		"reduce":                 mem.Reduce(mem.Sum, a, a, b),
		"reduce on a gpu":        mem.Reduce(mem.Sum, a, a, a),
		"reduce with host":       mem.Reduce(mem.Sum, a, host, a),
		"reduce of host and gpu": mem.Reduce(mem.Sum, host, host, a),
		"reduce to host":         mem.Reduce(mem.Sum, host, a, a),
		"reduce of all":          mem.ReduceAll(mem.Sum, host, host, a),
		"reduce of all to gpu":   mem.ReduceAll(mem.Sum, a, host),
		"reduce of all on a gpu": mem.ReduceAll(mem.Sum, a, a, a),
		"host's copy":            mem.Host.Copy(host, a),
		"divide":                 mem.Divide(a, 2),
		"copy of unequal sizes":  mem.Copy(a, host.Slice(0, 2)),
	} {
		if err == nil || !strings.Contains(err.Error(), "gpu") && !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: %v, want an error that names the memory", name, err)
		}
	}
}

func TestCopyInHostMemoryMayOverlap(t *testing.T) {
	s := []int32{1, 2, 3, 4, 5}
	if err := mem.Copy(mem.Of(s[1:]), mem.Of(s[:4])); err != nil {
		t.Fatal(err)
	}
	if want := []int32{1, 1, 2, 3, 4}; !slices.Equal(s, want) {
		t.Errorf("%v, want %v", s, want)
	}
}

func upload(t *testing.T, s mem.Space, f []float32) mem.Buffer {
	t.Helper()
	b, err := s.Alloc(mem.F32, len(f))
	if err == nil {
		err = mem.Copy(b, mem.Of(f))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}
