package cudaops

import (
	"regexp"
	"strings"
	"testing"

	"gompi/cudaops/cudatest"
	"gompi/internal/mem"
)

// The committed text is what clang 14 makes of kernels.cu.
func TestPTXIsWhatTheSourceGives(t *testing.T) {
	cudatest.CheckPTX(t, "kernels_sm75.ptx")
}

// Every operator and type has its kernel, alone in a module.
func TestEveryReductionHasAKernel(t *testing.T) {
	names := map[string]bool{}
	for op := mem.Sum; op < mem.Custom; op++ {
		for typ := mem.NoType + 1; typ.Valid(); typ++ {
			if op.Defined(typ) {
				names[op.String()+"_"+kernelType(op, typ).String()] = true
			}
		}
	}
	const target = "\n.target sm_75\n"
	entry := regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)
	for _, found := range entry.FindAllStringSubmatch(ptx, -1) {
		if !names[found[1]] {
			t.Errorf("no reduction uses %s", found[1])
		}
	}
	for name := range names {
		module := cut(name)
		if all := entry.FindAllStringSubmatch(module, -1); len(all) != 1 || all[0][1] != name {
			t.Errorf("the module of %s has kernels %v", name, all)
		}
		if !strings.Contains(module, target) || strings.Count(module, "{") < strings.Count(module, "}") {
			t.Errorf("the module of %s lacks its head or tail", name)
		}
	}
	// Local memory is what registers spill to: slow, and a mistake here.
	if strings.Contains(ptx, ".local") {
		t.Error("a kernel uses local memory")
	}
	// A module of one kernel has nothing that others share.
	if shared := regexp.MustCompile(`(?m)^\.(visible )?(func|global|const|shared)`).FindString(ptx); shared != "" {
		t.Errorf("%q is outside of kernels", shared)
	}
}

func TestVectorsBeginWhereAllOperandsAreAligned(t *testing.T) {
	at := func(addr uintptr, typ mem.Type, n int) Buffer { return mem.Device(&Device{}, addr, typ, n) }
	for _, c := range []struct {
		typ           mem.Type
		dst, src      uintptr
		n             int
		head, vectors uint64
	}{
		{mem.F32, 256, 512, 8, 0, 2},
		{mem.F32, 260, 516, 8, 3, 1},   // three, then a vector, then one
		{mem.F32, 260, 512, 800, 0, 0}, // nowhere
		{mem.F32, 260, 516, 3, 0, 0},   // not within three
		{mem.F32, 260, 516, 4, 3, 0},
		{mem.U8, 1, 17, 100, 15, 5},
		{mem.F64, 8, 24, 5, 1, 2},
		{mem.C128, 8, 8, 5, 0, 0}, // aligned to its parts
		{mem.C128, 16, 32, 5, 0, 5},
	} {
		var a kernelArgs
		a.elements = uint64(c.n)
		dst, src := at(c.dst, c.typ, c.n), at(c.src, c.typ, c.n)
		if err := a.arrange(c.typ, dst, []Buffer{src}); err != nil || a.head != c.head || a.vectors != c.vectors {
			t.Errorf("%d %v from %d to %d: %d elements before %d vectors (%v), want %d before %d",
				c.n, c.typ, c.src, c.dst, a.head, a.vectors, err, c.head, c.vectors)
		}
	}
	var a kernelArgs
	if err := a.arrange(mem.F32, at(256, mem.F32, 1), []Buffer{at(258, mem.F32, 1)}); err == nil {
		t.Error("an operand of float32 at an odd address is no error")
	}
}
