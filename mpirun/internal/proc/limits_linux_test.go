package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestALimitOfProcessesIsNamed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/self/cgroup":               "0::/job\n",
		"proc/self/mountinfo":            "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/job/pids.max":     "20\n",
		"sys/fs/cgroup/job/pids.current": "13\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := processLimit(root)
	if want := "there may be 20 threads and processes by pids.max of control group /job, and there are 13"; l.left != 7 || l.String() != want {
		t.Errorf("%d left, %q; want 7, %q", l.left, l, want)
	}
}

func TestThisProcessIsCounted(t *testing.T) {
	if n := threadsOf(os.Getuid()); n < 2 { // Go has more than one
		t.Errorf("this user runs %d threads", n)
	}
	if err := CheckLimits(); err != nil {
		t.Skip(err)
	}
}

func TestErrorsOfLimitsNameThem(t *testing.T) {
	err := NameLimit(fmt.Errorf("start: %w", unix.EMFILE))
	if !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), "(ulimit -n)") {
		t.Errorf("%v, want the limit of open files", err)
	}
	if other := errors.New("other"); NameLimit(other) != other {
		t.Errorf("%v, want %v", NameLimit(other), other)
	}
}
