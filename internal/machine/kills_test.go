package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKillsForWantOfMemoryAreNoticed(t *testing.T) {
	tests := []struct{ name, groups, file, before, after string }{
		{"version 2", "0::/job/step\n", "sys/fs/cgroup/job/step/memory.events", "low 0\noom 1\noom_kill 1\n",
			"low 0\noom 2\noom_kill 2\n"},
		{"version 2 in a container", "0::/host/path\n", "sys/fs/cgroup/memory.events", "oom_kill 0\n", "oom_kill 1\n"},
		{"version 1", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/\n", "sys/fs/cgroup/memory/job/memory.oom_control",
			"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"},
		{"version 1 in a container", "4:hugetlb,memory:/docker/77\n", "sys/fs/cgroup/memory/memory.oom_control",
			"oom_kill 3\n", "oom_kill 5\n"},
		{"no control group", "", "proc/vmstat", "nr_free 9\noom_kill 3\n", "nr_free 8\noom_kill 4\n"},
	}
	for _, tt := range tests {
		root := fileTree(t, map[string]string{"proc/self/cgroup": tt.groups, tt.file: tt.before,
			"proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
				"31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"})
		g := WatchKills(root)
		if g.More() {
			t.Errorf("%s: killed before anything happened", tt.name)
		}
		if err := os.WriteFile(filepath.Join(root, tt.file), []byte(tt.after), 0o666); err != nil {
			t.Fatal(err)
		}
		if !g.More() {
			t.Errorf("%s: the kill was not noticed", tt.name)
		}
		if g.More() {
			t.Errorf("%s: one kill was noticed twice", tt.name)
		}
	}
	if g := WatchKills(t.TempDir()); g.More() {
		t.Error("killed where nothing counts")
	}
}
