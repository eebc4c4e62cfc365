package machine

import (
	"bytes"
	"os"
	"path"
	"strconv"
)

// Kills reports when the kernel has killed processes for lack of memory, if the kernel counts kills
// for this process and its descendants.
type Kills struct {
	file  string // of the count, if any
	known int64  // the last count
}

// WatchKills finds the count below root, which is "/" except in tests: in this process's control
// group, of either version, or in one above, else the machine's.
func WatchKills(root string) Kills {
	for g := range ControlGroups(root, "memory") {
		file := path.Join(g.Dir, "memory.oom_control")
		if g.V2 {
			file = path.Join(g.Dir, "memory.events")
		}
		if n, ok := oomKills(file); ok {
			return Kills{file, n}
		}
	}
	file := path.Join(root, "proc/vmstat")
	n, _ := oomKills(file)
	return Kills{file, n}
}

// More reports whether the kernel has killed since WatchKills, or since More last returned true.
func (k *Kills) More() bool {
	n, ok := oomKills(k.file)
	if !ok || n <= k.known {
		return false
	}
	k.known = n
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
