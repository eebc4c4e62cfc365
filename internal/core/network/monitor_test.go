package network

import (
	"os"
	"path/filepath"
	"testing"

	"gompi/internal/boot"
)

// What becomes of this rank's processors and quota is taken to become of those who had
// the same.
func TestMonitorFollowsProcessorsAndQuota(t *testing.T) {
	two, first, second := CPUs{3}, CPUs{1}, CPUs{2}
	alike := Cards{{CPUs: two}, {CPUs: two}}
	bound := Cards{{CPUs: first}, {CPUs: second}}
	limited := Cards{{CPUs: two, Quota: 2}, {CPUs: two, Quota: 2}}
	four := &boot.Info{Nodes: 2, NodeOf: []int32{0, 0, 1, 1}}
	for _, tt := range []struct {
		name  string
		cards Cards
		info  *boot.Info
		cpus  CPUs
		quota string
		want  bool
	}{
		{"as it was", alike, &boot.Info{Nodes: 1}, two, "max 100000", true},
		{"fewer processors", alike, &boot.Info{Nodes: 1}, first, "max 100000", false},
		{"a quota", alike, &boot.Info{Nodes: 1}, two, "150000 100000", true},
		{"a small quota", alike, &boot.Info{Nodes: 1}, two, "100000 100000", false},
		{"a larger quota", limited, &boot.Info{Nodes: 1}, two, "800000 100000", true},
		{"no quota any more", limited, &boot.Info{Nodes: 1}, two, "max 100000", true},
		{"a smaller quota", limited, &boot.Info{Nodes: 1}, two, "50000 100000", false},
		{"bound as before", bound, &boot.Info{Nodes: 1}, first, "max 100000", true},
		{"bound where the other is", bound, &boot.Info{Nodes: 1}, second, "max 100000", false},
		{"bound elsewhere", bound, &boot.Info{Nodes: 1}, CPUs{4}, "max 100000", true},
		{"freed", Cards{{CPUs: first}, {CPUs: first}}, &boot.Info{Nodes: 1}, two, "max 100000", true},
		{"others on another host", append(bound, alike...), four, first, "max 100000", true},
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"proc/self/cgroup":            "0::/slurm/job\n",
			"proc/self/mountinfo":         "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/slurm/cpu.max": tt.quota + "\n",
		} {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		o := loadMonitor{tt.cards, tt.cards[tt.info.Rank], tt.info, root, func() CPUs { return tt.cpus }}
		if got := o.notOversubscribed(); got != tt.want {
			t.Errorf("%s: a processor for each: %v, want %v", tt.name, got, tt.want)
		}
	}
}
