package proc

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"

	"gompi/mpirun/internal/symbols"
)

// The record of a crash (guest/shim/signals.c): a mark, the address of the stack's copy, registers
// in the kernel's order, the copy; as text the namespace of files, the program, the mappings.
const (
	recordHead  = 19 * 8
	recordStack = 256 << 10
)

// ofKernel has the places of DWARF's registers in the kernel's order.
var ofKernel = []int{13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, symbols.PC}

// crashed returns the frames of a crash, "" if no frame is the program's. Its files are this
// process's, too, in one namespace.
func crashed(record []byte) string {
	space, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil || len(record) < recordHead+recordStack {
		return ""
	}
	maps, here := strings.CutPrefix(string(record[recordHead+recordStack:]), space)
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(record[8*i:]) }
	w := &walker{memory: bytes.NewReader(record[recordHead:][:recordStack]), from: number(1),
		programs: map[string]*symbols.Program{}}
	w.program, maps, _ = strings.Cut(maps, "\n")
	if w.readMappings(maps); !here || len(w.mapped) == 0 {
		return ""
	}
	var r symbols.Registers // as if the next instruction were to be returned to
	for n, i := range ofKernel {
		r.Set(n, number(2+i))
	}
	if r.Value[symbols.PC]++; r.Value[symbols.PC] == 1 { // a call of NULL
		r.Value[symbols.PC], _ = w.word(r.Value[symbols.StackPointer])
		r.Value[symbols.StackPointer] += 8
	}
	lines, _ := w.frames(r)
	return strings.Join(lines[:min(len(lines), mostWalked)], "\n")
}
