// Package cgroup finds the control groups that limit this process, of both versions,
// wherever they are mounted. Where there are none, as on other systems than Linux, it
// finds none.
package cgroup

import (
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Group is a control group: a folder of files.
type Group struct {
	Name string // its path below the uppermost group that can be seen from here: "/job/step"
	Dir  string // the folder
	V2   bool   // it is of the unified hierarchy
}

// Groups yields the groups that this process is in and to which the controller, "cpu"
// or "memory", may belong: of each hierarchy its own group, and then those above it,
// whose limits hold for it, too. A limit that is not set, or not of this controller, is
// a file that is not there. root is "/" but in tests.
func Groups(root, controller string) iter.Seq[Group] {
	return func(yield func(Group) bool) {
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

// upwards yields a group and those above it.
func upwards(mount, name string, v2 bool, yield func(Group) bool) bool {
	for ; ; name = path.Dir(name) {
		if !yield(Group{name, path.Join(mount, name), v2}) {
			return false
		}
		if name == "/" {
			return true
		}
	}
}

// mounted returns where a hierarchy is mounted, and which of its groups is the
// uppermost there: in a container it may be the container's own.
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
// mount: of its folders only the uppermost exists here.
func below(top, name string) string {
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(top, "/")); ok && (rest == "" || rest[0] == '/') {
		name = rest
	}
	return path.Join("/", name)
}

func listed(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// Number reads a file of the group that holds one number; its name differs between versions 2 and
// 1. It reports false for other content, such as "max".
func (g Group) Number(v2, v1 string) (int64, bool) {
	name := v1
	if g.V2 {
		name = v2
	}
	data, err := os.ReadFile(path.Join(g.Dir, name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}
