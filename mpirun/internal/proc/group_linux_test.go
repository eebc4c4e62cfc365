package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Folders stand for the groups here: of those, too, the kernel removes only what is
// empty.
func TestOnlyGroupsOfTheGoneAreSwept(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	if err := unix.Waitid(unix.P_PID, zombie.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	inUse := exec.Command("true")
	if err := inUse.Run(); err != nil {
		t.Fatal(err)
	}
	of := func(pid int) string { return prefix + strconv.Itoa(pid) }
	kept := []string{of(os.Getppid()), of(inUse.Process.Pid), prefix + "test", "slice"}
	swept := []string{of(gone.Process.Pid), of(zombie.Process.Pid), of(os.Getpid())}
	group := t.TempDir()
	for _, name := range append(kept, append(swept, of(inUse.Process.Pid)+"/member")...) {
		if err := os.MkdirAll(filepath.Join(group, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(group)
	entries, err := os.ReadDir(group)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	slices.Sort(kept)
	if !slices.Equal(left, kept) {
		t.Errorf("left are %v, want %v", left, kept)
	}
}
