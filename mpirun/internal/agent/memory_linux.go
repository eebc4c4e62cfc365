package agent

import (
	"bytes"
	"os"
	"path"
	"strconv"
)

// A memoryGuard knows how often the kernel has killed processes for want of
// memory, where it counts that for this process and those below it.
type memoryGuard struct {
	file  string // that has the count, "" if there is none
	kills int64  // when it was first read
}

// newMemoryGuard looks for the count below root, which is "/" but in tests: that
// of our control group, in either version; else the machine's.
func newMemoryGuard(root string) memoryGuard {
	groups, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	var files []string
	for line := range bytes.Lines(groups) {
		// hierarchy number:controllers:path
		fields := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3)
		if len(fields) < 3 {
			continue
		}
		// In a container the path may be the host's, and what is mounted ours.
		for _, at := range []string{string(fields[2]), ""} {
			if bytes.Equal(fields[0], []byte("0")) {
				files = append(files, path.Join(root, "sys/fs/cgroup", at, "memory.events"))
			}
			for name := range bytes.SplitSeq(fields[1], []byte(",")) {
				if string(name) == "memory" {
					files = append(files, path.Join(root, "sys/fs/cgroup/memory", at, "memory.oom_control"))
				}
			}
		}
	}
	for _, file := range append(files, path.Join(root, "proc/vmstat")) {
		if n, ok := oomKills(file); ok {
			return memoryGuard{file, n}
		}
	}
	return memoryGuard{}
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
