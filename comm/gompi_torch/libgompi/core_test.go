//go:build linux && cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/mem"
)

// C's allreduce of 8 bytes allocates nothing in Go.
func TestACollectiveFromCAllocatesNothing(t *testing.T) {
	commtest.Run(t, 1, func(_ context.Context, c *comm.Comm) error {
		x := new([2]int64)
		o := &_Ctype_struct_gompi_call{comm: _Ctype_gompi_comm(newCommunicator((*core.Comm)(c))),
			kind: _Ctype_int(calls.Allreduce), _type: 4, op: 1, n: 1}
		o.send, o.recv = unsafe.Pointer(&x[0]), unsafe.Pointer(&x[1])
		defer communicators.remove(int64(o.comm))
		text := new([2048]_Ctype_char)
		x[0] = 5
		if n := testing.AllocsPerRun(100, func() {
			if code := gompi_core_collective(o, &text[0]); code != 0 || x[1] != 5 {
				t.Errorf("code %d, result %d", code, x[1])
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		return nil
	})
}

// Collectives, types and operators have the same numbers in C as in packages calls and mem.
func TestCAndGoNumberAlike(t *testing.T) {
	number := map[string]int{}
	for _, k := range calls.Exchanges {
		number[strings.TrimPrefix(k.MPI(), "MPI_")] = int(k)
	}
	for x := mem.I8; x <= mem.C128; x++ {
		number[x.String()] = int(x)
	}
	for op := mem.Sum; op <= mem.BXor; op++ {
		number[op.String()] = int(op)
	}
	for name, n := range number {
		number[strings.ToUpper(name)] = n
	}
	for file, enums := range map[string]int{"shim/core.h": 11, "gompi.h": 22} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range regexp.MustCompile(`GOMPI_(\w+) = (\d+)`).FindAllStringSubmatch(string(text), -1) {
			if m[1] == "OK" || strings.HasPrefix(m[1], "ERR_") || m[1] == "TEXT" {
				continue
			}
			if found++; fmt.Sprint(number[m[1]]) != m[2] {
				t.Errorf("%s: GOMPI_%s is %s, in Go %d", file, m[1], m[2], number[m[1]])
			}
		}
		if found != enums {
			t.Errorf("%s has %d numbers, want %d", file, found, enums)
		}
	}
}

func TestNumbersAreNotUsedAgain(t *testing.T) {
	var tab table[string]
	if n := tab.add("first"); n != 1 {
		t.Errorf("the first number is %d: want 1", n)
	}
	seen := map[int64]bool{1: true}
	for range 100 { // more than one slot, each several times
		n, m := tab.add("one"), tab.add("two")
		if seen[n] || seen[m] || n <= 0 || m <= 0 {
			t.Fatalf("numbers %d and %d are used again, or none", n, m)
		}
		seen[n], seen[m] = true, true
		if v, ok := tab.find(n); v != "one" || !ok {
			t.Fatalf("number %d is of %q", n, v)
		}
		if !tab.remove(n) || tab.remove(n) {
			t.Fatalf("%d was not removed once", n)
		}
		if _, ok := tab.find(n); ok {
			t.Fatalf("%d is still there", n)
		}
	}
	if all := tab.numbers(); len(all) != 101 {
		t.Errorf("%d values: want 101", len(all))
	}
	for _, n := range []int64{0, -1, 1 << 40, 1<<32 | 1, -1 << 63} {
		if v, ok := tab.find(n); ok {
			t.Errorf("number %d is of %q", n, v)
		}
	}
}

func TestAPanicIsAnError(t *testing.T) {
	text := new([2048]_Ctype_char)
	code := guarded(&text[0], func() error { panic("trouble") })
	if got := unsafe.String((*byte)(unsafe.Pointer(text)), 2048); code != 8 ||
		!strings.HasPrefix(got, "panic in gompi: trouble\x00") {
		t.Errorf("code %d, text %q", code, got[:40])
	}
}

func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	text := new([2048]_Ctype_char)
	result(errors.New("x"+strings.Repeat("ä", 2000)), &text[0])
	got, _, _ := strings.Cut(unsafe.String((*byte)(unsafe.Pointer(text)), 2048), "\x00")
	if want := "x" + strings.Repeat("ä", 1023); got != want {
		t.Errorf("%d bytes, the last %q: want %d", len(got), got[len(got)-4:], len(want))
	}
}
