package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fileTree makes files in a folder, which it returns.
func fileTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, data := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestQuotaIsTheLeastOfAllGroupsAbove(t *testing.T) {
	const (
		v2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		v1 = "25 18 0:22 / /proc rw - proc proc rw\n36 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n"
	)
	tests := []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"no control groups", nil, 0},
		{"v2, no limit", map[string]string{"proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/job/cpu.max": "max 100000\n"}, 0},
		{"v2, rounded up", map[string]string{"proc/self/cgroup": "0::/job\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/job/cpu.max": "150000 100000\n"}, 2},
		{"v2, a group above", map[string]string{"proc/self/cgroup": "0::/slice/job/step\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/slice/cpu.max":          "300000 100000\n",
			"sys/fs/cgroup/slice/job/step/cpu.max": "800000 100000\n"}, 3},
		{"v1", map[string]string{"proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/job\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}, 1},
		{"v1, no limit", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/job\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n"}, 0},
		{"v1, a container's own group is what it sees mounted",
			map[string]string{"proc/self/cgroup": "4:cpu:/docker/0123\n",
				"proc/self/mountinfo":                 "36 25 0:31 /docker/0123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
				"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "400000\n",
				"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 4},
		{"both, the least", map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/job\n0::/\n",
			"proc/self/mountinfo":                             v1 + v2,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "700000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu.max":                           "200000 100000\n"}, 2},
		{"nonsense", map[string]string{"proc/self/cgroup": "x\n0::/job\n", "proc/self/mountinfo": "y\n" + v2,
			"sys/fs/cgroup/job/cpu.max": "NaN 0\n"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := WholeCPUs(fileTree(t, tt.files)); got != tt.want {
				t.Errorf("quota is %d, want %d", got, tt.want)
			}
		})
	}
}

func TestGroupsAreThoseOfTheControllerAndAllAbove(t *testing.T) {
	root := fileTree(t, map[string]string{
		"proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/0123/step\n3:memory:\n0::/a/b\n",
		"proc/self/mountinfo": "36 25 0:31 /docker/0123 /memory rw - cgroup cgroup rw,memory\n" +
			"37 25 0:31 /docker/0 /again rw - cgroup cgroup rw,memory\n30 23 0:26 / /unified rw - cgroup2 cgroup2 rw\n",
		"memory/step/memory.limit_in_bytes": "7\n", "unified/a/memory.max": "max\n",
	})
	want := []ControlGroup{
		{"/step", root + "/memory/step", false}, {"/", root + "/memory", false}, {"/", root + "/memory", false},
		{"/a/b", root + "/unified/a/b", true}, {"/a", root + "/unified/a", true}, {"/", root + "/unified", true},
	}
	got := slices.Collect(ControlGroups(root, "memory"))
	if !slices.Equal(got, want) {
		t.Fatalf("%+v\nwant %+v", got, want)
	}
	limit := func(g ControlGroup) (int64, bool) { return g.Number("memory.max", "memory.limit_in_bytes") }
	if n, ok := limit(got[0]); !ok || n != 7 {
		t.Errorf("limit of %s: %d, %v, want 7", got[0].Name, n, ok)
	}
	for _, g := range []ControlGroup{got[1], got[4]} { // there is none; it is max
		if n, ok := limit(g); ok {
			t.Errorf("limit of %s: %d, want none", g.Dir, n)
		}
	}
	for g := range ControlGroups(root, "memory") {
		if g != want[0] {
			t.Errorf("%v after the walk has been left", g)
		}
		break
	}
}

func TestAGroupIsNamedAsItIsSeen(t *testing.T) {
	for _, tt := range [][3]string{
		{"/", "/job", "/job"}, {"/", "/", "/"}, {"/docker/01", "/docker/01", "/"},
		{"/docker/01", "/docker/01/step", "/step"},
		{"/docker/01", "/docker/0123", "/docker/0123"}, {"/..", "/job", "/job"},
	} {
		if got := below(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s where %s is mounted: %s, want %s", tt[1], tt[0], got, tt[2])
		}
	}
}
