package agent

import (
	"bytes"
	"os"
	"path"
	"strconv"

	"gompi/internal/cgroup"
)

// A memoryGuard knows how often the kernel has killed processes for want of
// memory, where it counts that for this process and those below it.
type memoryGuard struct {
	file  string // that has the count, if there is one
	kills int64  // when it was first read
}

// newMemoryGuard looks for the count below root, which is "/" but in tests: that
// of our control group, in either version, or of one above it; else the machine's.
func newMemoryGuard(root string) memoryGuard {
	for g := range cgroup.Groups(root, "memory") {
		file := path.Join(g.Dir, "memory.oom_control")
		if g.V2 {
			file = path.Join(g.Dir, "memory.events")
		}
		if n, ok := oomKills(file); ok {
			return memoryGuard{file, n}
		}
	}
	file := path.Join(root, "proc/vmstat")
	n, _ := oomKills(file)
	return memoryGuard{file, n}
}

// killed reports whether the kernel has killed for want of memory since the
// guard was made or since killed last said so.
func (g *memoryGuard) killed() bool {
	n, ok := oomKills(g.file)
	if !ok || n <= g.kills {
		return false
	}
	g.kills = n
	return true
}

// oomKills reads the number in a line "oom_kill 7".
func oomKills(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == "oom_kill" {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
