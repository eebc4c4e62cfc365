package machine

import (
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A ControlGroup is one of the control groups that limit this process, of either version: a folder
// of files. On systems without control groups there are none.
type ControlGroup struct {
	Name string // path below the topmost visible group: "/job/step"
	Dir  string // the folder
	V2   bool   // of the unified hierarchy
}

// ControlGroups yields this process's groups to which the controller, "cpu" or "memory", may
// belong: of each hierarchy its own group, and then the groups above, whose limits hold for it, too.
// The file of a limit that is not set, or not this controller's, does not exist. root is "/" except
// in tests.
func ControlGroups(root, controller string) iter.Seq[ControlGroup] {
	return func(yield func(ControlGroup) bool) {
		data, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
		mounts, _ := os.ReadFile(path.Join(root, "proc/self/mountinfo"))
		for line := range strings.Lines(string(data)) {
			// 4:cpu,cpuacct:/user.slice
			fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(fields) < 3 {
				continue
			}
			v2 := fields[0] == "0" && fields[1] == ""
			if !v2 && !listed(fields[1], controller) {
				continue
			}
			mount, top, ok := mounted(string(mounts), controller, v2)
			if ok && !upwards(path.Join(root, mount), below(top, fields[2]), v2, yield) {
				return
			}
		}
	}
}

// upwards yields a group and its ancestors.
func upwards(mount, name string, v2 bool, yield func(ControlGroup) bool) bool {
	for ; ; name = path.Dir(name) {
		if !yield(ControlGroup{name, path.Join(mount, name), v2}) {
			return false
		}
		if name == "/" {
			return true
		}
	}
}

// mounted returns the mount point of a hierarchy, and the topmost group there: in a container,
// possibly the container's own.
func mounted(mounts, controller string, v2 bool) (mount, top string, ok bool) {
	for line := range strings.Lines(mounts) {
		// 36 25 0:31 /top /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
		mine, theirs, found := strings.Cut(line, " - cgroup")
		if !found {
			continue
		}
		f, fs := strings.Fields(mine), strings.Fields("cgroup"+theirs)
		if len(f) < 5 || len(fs) < 3 {
			continue
		}
		if v2 && fs[0] == "cgroup2" || !v2 && fs[0] == "cgroup" && listed(fs[2], controller) {
			return f[4], f[3], true
		}
	}
	return "", "", false
}

// below returns the name of a group relative to top. A group that is not below top is outside this
// mount, of which only the top exists here.
func below(top, name string) string {
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(top, "/")); ok && (rest == "" || rest[0] == '/') {
		name = rest
	}
	return path.Join("/", name)
}

func listed(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// Number reads a file of the group with one number; the file's name differs between versions 2 and
// 1. ok is false for other content, such as "max".
func (g ControlGroup) Number(v2, v1 string) (int64, bool) {
	name := v1
	if g.V2 {
		name = v2
	}
	n, err := strconv.ParseInt(read(g.Dir, name), 10, 64)
	return n, err == nil
}

// Numbers reads a file whose lines begin with a name and its number.
func Numbers(file string) map[string]int64 {
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
