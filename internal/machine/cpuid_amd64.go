package machine

import (
	"encoding/binary"
	"sync"
)

// cpuid executes the instruction of that name.
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

var identity = sync.OnceValue(func() id {
	_, b, c, d := cpuid(0, 0)
	vendor := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, b), d)
	i := id{vendor: string(binary.LittleEndian.AppendUint32(vendor, c))}
	a, _, c, _ := cpuid(1, 0)
	i.family, i.model = familyAndModel(a)
	i.virtual = c>>31 == 1
	if most, _, _, _ := cpuid(0x80000000, 0); most >= 0x80000006 {
		_, _, c, _ = cpuid(0x80000006, 0)
		i.cache = int(c >> 16)
	}
	return i
})

// familyAndModel decodes EAX of leaf 1.
func familyAndModel(a uint32) (family, model int) {
	family, model = int(a>>8&15), int(a>>4&15)
	if family == 15 {
		family += int(a >> 20 & 255)
	}
	if family >= 15 || family == 6 {
		model += int(a>>16&15) << 4
	}
	return family, model
}
