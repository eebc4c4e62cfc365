package seg

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMemoryLimitIsTheLeastThatMachineAndControlGroupsLeave(t *testing.T) {
	const (
		gib = 1 << 30
		v2  = "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"
		v1  = "36 25 0:31 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
	)
	machine := map[string]string{"proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   8388608 kB\n"}
	tests := map[string]struct {
		files map[string]string
		want  Limit
	}{
		"nothing to read": {nil, unlimited},
		"machine":         {machine, Limit{8 * gib, 16 * gib, "this machine"}},
		"version 2, limited above, with cache": {map[string]string{
			"proc/self/cgroup":                      "0::/job/step\n",
			"proc/self/mountinfo":                   v2,
			"sys/fs/cgroup/job/memory.max":          "4294967296\n",
			"sys/fs/cgroup/job/memory.current":      "3221225472\n",
			"sys/fs/cgroup/job/memory.stat":         "anon 5\ninactive_file 1073741824\nactive_file 536870912\n",
			"sys/fs/cgroup/job/step/memory.max":     "max\n",
			"sys/fs/cgroup/job/step/memory.current": "3221225472\n",
		}, Limit{2*gib + gib/2, 4 * gib, "control group /job"}},
		"version 1, in a container that sees its own group as the root": {map[string]string{
			"proc/self/cgroup":                           "5:cpu:/docker/1\n4:hugetlb,memory:/docker/1\n",
			"proc/self/mountinfo":                        v1,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/memory.stat":           "inactive_file 1\ntotal_inactive_file 536870912\n",
		}, Limit{gib + gib/2, 2 * gib, "control group /"}},
		"over its limit": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"proc/self/mountinfo":          v2,
			"sys/fs/cgroup/memory.max":     "1000\n",
			"sys/fs/cgroup/memory.current": "2000\n",
		}, Limit{0, 1000, "control group /"}},
	}
	for name, test := range tests {
		root := t.TempDir()
		if test.files != nil {
			write(t, root, machine)
		}
		write(t, root, test.files)
		if got := memoryLimit(root); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryLimitOfThisProcess(t *testing.T) {
	l := MemoryLimit()
	if l == unlimited || l.Left <= 0 || l.Left > l.Of || l.By == "" {
		t.Errorf("%+v, want what is left of a limit", l)
	}
	t.Log(l)
}

// A claim that would take the last memory is refused, in words, before the kernel is asked.
func TestWhatIsManyIsClaimedOfWhatIsLeft(t *testing.T) {
	s := newSegment(t, 0)
	asked := 0
	s.LimitBy(func() Limit {
		asked++
		return Limit{Left: spare + many, Of: 1 << 30, By: "a test"}
	})
	if err := s.Claim(0, many-1); err != nil || asked != 0 {
		t.Errorf("few bytes: %v, asked %d times", err, asked)
	}
	if err := s.Claim(0, many); err != nil || asked != 1 {
		t.Errorf("as many as there are: %v, asked %d times", err, asked)
	}
	err := s.ClaimArena(0, 0, many+1)
	if !errors.Is(err, unix.ENOMEM) || !strings.Contains(err.Error(), "32.2 MiB of the 1.00 GiB of a test") {
		t.Errorf("one more: %v", err)
	}
}
