package seg

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// MemoryLimit returns what memory this process may still take: the least that the
// machine and the control groups leave, of either version, this process's own and
// those above. What the kernel would drop of its cache of files is left, too. Others
// may take it first; so who claims memory looks before, and claims still. It reads
// some files, which takes a fraction of a millisecond.
func MemoryLimit() Limit { return memoryLimit("/") }

// memoryLimit is MemoryLimit below root, which is / but in tests.
func memoryLimit(root string) Limit {
	l := unlimited
	machine := numbers(path.Join(root, "proc/meminfo")) // in KiB
	if of, ok := machine["MemTotal:"]; ok {
		l = Limit{Left: machine["MemAvailable:"] << 10, Of: of << 10, By: "this machine"}
	}
	groups, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(groups)) {
		// hierarchy number:controllers:path
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			l = l.least(groupLimit(root, f[0] == "0" && f[1] == "", f[1], f[2]))
		}
	}
	return l
}

// groupLimit returns what a control group and those above it leave.
func groupLimit(root string, v2 bool, controllers, group string) Limit {
	l := unlimited
	mount, most, used, cache := "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
	switch {
	case v2:
		mount, most, used, cache = "sys/fs/cgroup", "memory.max", "memory.current", ""
	case !strings.Contains(","+controllers+",", ",memory,"):
		return l
	}
	// In a container the path may be the host's, and what is mounted ours: then only
	// the last of these folders is there.
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		at := path.Join(root, mount, dir)
		of, ok := number(path.Join(at, most))
		taken, ok2 := number(path.Join(at, used))
		if ok && ok2 {
			stat := numbers(path.Join(at, "memory.stat"))
			taken -= stat[cache+"inactive_file"] + stat[cache+"active_file"]
			l = l.least(Limit{Left: max(of-max(taken, 0), 0), Of: of, By: "control group " + dir})
		}
		if dir == "/" {
			return l
		}
	}
}

// number reads a file that is one; what else it may be, as "max", is no limit.
func number(file string) (int64, bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// numbers reads a file whose lines begin with a name and its number.
func numbers(file string) map[string]int64 {
	data, _ := os.ReadFile(file)
	found := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				found[f[0]] = n
			}
		}
	}
	return found
}
