package core_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/internal/machine"
)

// allocatesVariable makes a process of this test one that allocates: its value is the
// control group that it runs in.
const allocatesVariable = "COMM_TEST_ALLOCATES"

const inGroup = 256 << 20 // bytes of memory that a group has

// A control group that the kernel limits is asked before the kernel kills.
func TestAllocInALimitedControlGroupIsAnError(t *testing.T) {
	if group := os.Getenv(allocatesVariable); group != "" {
		if err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
			return allocates(ctx, c, group)
		})...); err != nil {
			t.Error(err)
		}
		return
	}
	group := limitedGroup(t)
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group.Dir, os.Args[0],
		"-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), allocatesVariable+"="+group.Name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// allocates wants more memory than the rank's control group has, is notified, and continues.
func allocates(ctx context.Context, c *comm.Comm, group string) error {
	_, err := comm.Alloc[byte](ctx, c, 2*inGroup)
	if !errors.Is(err, comm.ErrMemory) || !strings.Contains(err.Error(), "control group "+group) {
		return fmt.Errorf("%w: want ErrMemory of control group %s", err, group)
	}
	memory, err := comm.Alloc[byte](ctx, c, inGroup/16)
	if err != nil {
		return err
	}
	for i := range memory {
		memory[i] = 1
	}
	return comm.Barrier(ctx, c)
}

// limitedGroup makes a group below this process's, with limited memory.
func limitedGroup(t *testing.T) machine.ControlGroup {
	t.Helper()
	for g := range machine.ControlGroups("/", "memory") {
		name := fmt.Sprintf("gompi-test-%d", os.Getpid())
		g.Name, g.Dir = filepath.Join(g.Name, name), filepath.Join(g.Dir, name)
		if os.Mkdir(g.Dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(g.Dir) })
		file := "memory.limit_in_bytes"
		if g.V2 {
			file = "memory.max"
		}
		if os.WriteFile(filepath.Join(g.Dir, file), []byte(fmt.Sprint(inGroup)), 0) == nil {
			return g
		}
	}
	t.Skip("left out: no control groups with limited memory can be made here")
	return machine.ControlGroup{}
}
