package network

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

// machineID returns an identifier of the machine that this process runs on, nil if not known. The
// identifier is the same in all containers and network namespaces of a machine.
func machineID() []byte {
	id, err := os.ReadFile(bootID)
	if err != nil {
		return nil
	}
	h := fnv.New64a()
	h.Write(id)
	return h.Sum(nil)
}

// clock returns an identifier of this process's monotonic clock, 0 if not known. Each time
// namespace of a machine has its own clock.
func clock() uint64 {
	id, err := os.ReadFile(bootID)
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(id)
	space, _ := os.Readlink("/proc/self/ns/time") // an old kernel has none
	h.Write([]byte(space))
	return h.Sum64()
}

const bootID = "/proc/sys/kernel/random/boot_id"
