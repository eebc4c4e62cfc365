package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Folders stand for the groups here: folders, too, must be empty for removal.
func TestOnlyGroupsOfTheGoneAreSwept(t *testing.T) {
	of := func(n int) string { return fmt.Sprintf("%s%d-%016x", prefix, os.Getpid(), n) } // whatever the agent's number
	living, inUse, gone, nested := of(1), of(2), of(3), of(4)
	kept := []string{living, inUse, prefix + "test", prefix + "17", "slice"}
	group := t.TempDir()
	for _, name := range append(slices.Clone(kept), gone, nested, nested+"/"+gone, nested+"/other/"+gone) {
		if err := os.MkdirAll(filepath.Join(group, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(group, inUse, "process"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, held := lock(filepath.Join(group, living))
	if !held {
		t.Fatal("the folder of a group cannot be locked")
	}
	defer unix.Close(fd)
	if got := left(group, prefix); len(got) != 3 {
		t.Errorf("the groups %q are left, want three", got)
	}
	sweep(group)
	entries, err := os.ReadDir(group)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, e := range entries {
		there = append(there, e.Name())
	}
	slices.Sort(kept)
	if !slices.Equal(there, kept) {
		t.Errorf("there are %q, want %q", there, kept)
	}
}

func TestAKilledGroupIsTheKernels(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cgroup.kill")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	(&Group{dir: dir}).Kill()
	if got, err := os.ReadFile(file); err != nil || string(got) != "1" {
		t.Errorf("cgroup.kill gets %q, %v, want 1", got, err)
	}
}
