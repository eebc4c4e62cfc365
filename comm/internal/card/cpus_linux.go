package card

import (
	"hash/fnv"
	"os"

	"golang.org/x/sys/unix"
)

// affinity returns the processors that this process may run on.
func affinity() CPUs {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil
	}
	var s CPUs
	for cpu := range len(mask) * 64 {
		if mask.IsSet(cpu) {
			for len(s) <= cpu/8 {
				s = append(s, 0)
			}
			s[cpu/8] |= 1 << (cpu % 8)
		}
	}
	return s
}

// machine returns what distinguishes the machine that this process runs on from others,
// nil if that cannot be known. Containers and network namespaces do not hide it.
func machine() []byte {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	h := fnv.New64a()
	h.Write(id)
	return h.Sum(nil)
}
