package seg

import (
	"path"

	"gompi/internal/machine"
)

// MemoryLimit returns the memory that this process may still allocate: the least available on the
// machine, in its control group (version 1 or 2) and in that group's ancestors. Page cache that the
// kernel can drop counts as available. Others may allocate the memory first, so an allocation
// within the limit can still fail. MemoryLimit reads files in a fraction of a millisecond.
func MemoryLimit() Limit { return memoryLimit("/") }

// memoryLimit is MemoryLimit below root, which is / except in tests.
func memoryLimit(root string) Limit {
	l := unlimited
	memory := machine.Numbers(path.Join(root, "proc/meminfo")) // in KiB
	if of, ok := memory["MemTotal:"]; ok {
		l = Limit{Left: memory["MemAvailable:"] << 10, Of: of << 10, By: "this machine"}
	}
	for g := range machine.ControlGroups(root, "memory") {
		l = l.least(groupLimit(g))
	}
	return l
}

// groupLimit returns the Limit that a control group sets.
func groupLimit(g machine.ControlGroup) Limit {
	of, ok := g.Number("memory.max", "memory.limit_in_bytes")
	taken, ok2 := g.Number("memory.current", "memory.usage_in_bytes")
	if !ok || !ok2 {
		return unlimited
	}
	stat, total := machine.Numbers(path.Join(g.Dir, "memory.stat")), "total_"
	if g.V2 {
		total = "" // memory.stat includes the groups below, too
	}
	taken -= stat[total+"inactive_file"] + stat[total+"active_file"]
	return Limit{Left: max(of-max(taken, 0), 0), Of: of, By: "control group " + g.Name}
}
