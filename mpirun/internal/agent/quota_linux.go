package agent

import (
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// quota returns how many processors' worth of time the control groups that
// this process is in leave it, rounded up; 0: all. root is / but in tests.
func quota(root string) int {
	least := math.Inf(1)
	for _, g := range cpuGroups(root) {
		// A limit of any group above holds, too.
		for dir := g.dir; ; dir = path.Dir(dir) {
			if cpus, ok := limit(path.Join(root, g.mount, dir), g.v2); ok {
				least = min(least, cpus)
			}
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return int(math.Ceil(min(least, 1<<15)))
}

// A cpuGroup is a control group that may limit time: a folder below a mount.
type cpuGroup struct {
	mount, dir string
	v2         bool
}

// cpuGroups returns the groups that this process is in, one of the unified
// hierarchy (v2), one of that which controls processor time in the old way (v1).
func cpuGroups(root string) []cpuGroup {
	data, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var groups []cpuGroup
	for line := range strings.Lines(string(data)) {
		// 4:cpu,cpuacct:/user.slice
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		v2 := fields[0] == "0" && fields[1] == ""
		if !v2 && !hasWord(fields[1], "cpu") {
			continue
		}
		if mount, top, ok := cgroupMount(root, v2); ok {
			// In a container the mount may be of the container's own group.
			dir := path.Join("/", strings.TrimPrefix(fields[2], strings.TrimSuffix(top, "/")))
			groups = append(groups, cpuGroup{mount, dir, v2})
		}
	}
	return groups
}

// cgroupMount returns where the groups are mounted, and which of them is the
// uppermost there.
func cgroupMount(root string, v2 bool) (mount, top string, ok bool) {
	data, err := os.ReadFile(path.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return "", "", false
	}
	for line := range strings.Lines(string(data)) {
		// 36 25 0:31 /top /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
		mine, theirs, _ := strings.Cut(line, " - ")
		f, fs := strings.Fields(mine), strings.Fields(theirs)
		if len(f) < 5 || len(fs) < 3 {
			continue
		}
		if v2 && fs[0] == "cgroup2" || !v2 && fs[0] == "cgroup" && hasWord(fs[2], "cpu") {
			return f[4], f[3], true
		}
	}
	return "", "", false
}

// limit returns the processors' worth of time that one group allows.
func limit(dir string, v2 bool) (float64, bool) {
	file, period := "cpu.cfs_quota_us", "cpu.cfs_period_us"
	if v2 {
		file = "cpu.max"
	}
	data, err := os.ReadFile(path.Join(dir, file))
	if err != nil {
		return 0, false
	}
	words := strings.Fields(string(data)) // v2: "150000 100000", or "max 100000"
	if !v2 {
		data, err := os.ReadFile(path.Join(dir, period))
		if err != nil {
			return 0, false
		}
		words = append(words, strings.Fields(string(data))...)
	}
	if len(words) != 2 {
		return 0, false
	}
	time, err1 := strconv.ParseFloat(words[0], 64)
	of, err2 := strconv.ParseFloat(words[1], 64)
	if err1 != nil || err2 != nil || !(time > 0) || !(of > 0) { // -1 is no limit
		return 0, false
	}
	return time / of, true
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}
