package agent

import (
	"os"
	"path"
	"strings"
)

// A cgroup is a control group: a folder below a mount.
type cgroup struct {
	mount, dir string
	v2         bool
}

// cgroups returns the groups that this process is in, one of the unified
// hierarchy (v2), one of that which controls processor time in the old way (v1).
func cgroups(root string) []cgroup {
	data, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var groups []cgroup
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
			groups = append(groups, cgroup{mount, dir, v2})
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

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}
