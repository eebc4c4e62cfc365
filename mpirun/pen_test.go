package mpirun

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// Ranks run in a control group of their own where one can be made, which is gone
// with the job, whatever they have left in it.
func TestRanksAreInAControlGroupOfTheirOwn(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "cgroup2", 0, ""); err != nil {
		t.Skipf("left out: no control groups (v2) can be mounted here: %v", err)
	}
	defer unix.Unmount(mount, 0)
	for _, end := range []string{"exit 0", "exit 3", "kill -9 $PPID"} {
		cmd := exec.Command("gompirun", "-q", "-np", "2", "sh", "-c", `cat /proc/self/cgroup; setsid sleep 1000 & echo "$GOMPI_RANK" >&2; [ "$GOMPI_RANK" = 0 ] || `+end)
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %v\n%s", end, err, out)
		pens := regexp.MustCompile(`0::(/\S*gompi-\d+)\n`).FindAllStringSubmatch(string(out), -1)
		if len(pens) != 2 {
			t.Fatalf("%s: %d of 2 ranks say that they are in a group of an agent:\n%s", end, len(pens), out)
		}
		if _, err := os.Stat(mount + pens[0][1]); !os.IsNotExist(err) {
			t.Errorf("%s: the group %s is left: %v", end, pens[0][1], err)
		}
	}
}
