// Package machine has facts of a process's machine: the name of its processor, and settings for the
// few whose best ways are not measured at run time; the control groups that limit the process
// (cgroup.go), and the InfiniBand and RoCE devices near some processors (rdma.go).
package machine

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
)

// tunings are for measured processors, by vendor, family and models.
//
// Intel Xeon, Sapphire and Emerald Rapids (two virtual processors, 2 MiB of second-level cache for
// each core): the kernel copies 16 KiB from process to process in 2.3 us, a ring in 3.8. In
// collectives a line that is only stored evicts another from the second-level cache (np=2, plain
// and non-temporal stores, memory from Alloc: allreduce of 1 MiB 46 and 47 us, of 2 MiB 150 and
// 107). More ranks have more such caches (np=16, allgather of 16 KiB 54 and 74). Of rings of
// several shapes, timed with copies alone, with 128 to 512 KiB in flight, chunks of 16 to 64 KiB
// are best: 64 KiB in 8 chunks of 16 KiB 5.5 us, in 2 of 4 KiB 14.6.
var tunings = []struct {
	vendor string
	family int
	models []int
	tuning string
}{
	{"GenuineIntel", 6, []int{143, 207},
		"shm.read=16k;shm.read.below=never;shm.ring.chunk=16k;shm.ring.bytes=256k;" +
			"shm.nontemporal=2m;shm.nontemporal.rank=1m"},
}

// Processor names this machine's processor: "GenuineIntel 6/143, 2048 KiB of second-level cache,
// virtual".
func Processor() string { return identity().String() }

// Tuning returns the settings of this machine's processor, as GOMPI_TUNE has them.
func Tuning() string { return identity().tuning() }

// An id identifies a kind of processor.
type id struct {
	vendor        string // "" on other architectures than amd64
	family, model int
	cache         int // KiB of second-level cache of the processor that ran cpuid
	virtual       bool
}

func (i id) tuning() string {
	for _, t := range tunings {
		if t.vendor == i.vendor && t.family == i.family && slices.Contains(t.models, i.model) {
			return t.tuning
		}
	}
	return ""
}

func (i id) String() string {
	vendor := cmp.Or(i.vendor, runtime.GOARCH)
	s := fmt.Sprintf("%s %d/%d, %d KiB of second-level cache", vendor, i.family, i.model, i.cache)
	if i.virtual {
		s += ", virtual"
	}
	return s
}
