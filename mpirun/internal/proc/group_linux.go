package proc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/machine"
)

// A Group is the control group (v2) of the ranks of one agent. The kernel kills all its processes
// at once, even if they fork faster than they can be found. A nil Group stands for a host without
// such groups, or without the right to make one: there processes are found one by one.
type Group struct {
	dir string
	fd  int
}

// The name of a group has the process id of its agent and a random number, because agents in
// several PID namespaces may share a process id and a parent group. A living agent holds a lock
// on the folder of its group, so that other processes recognize leftover groups.
const prefix = "gompi-"

var groupName = regexp.MustCompile(`^gompi-\d+-[0-9a-f]{16}$`)

// parent returns the cgroup directory of this process, the parent of its groups; "" without
// cgroup v2.
func parent() string {
	for own := range machine.ControlGroups("/", "cpu") {
		if own.V2 {
			return own.Dir
		}
	}
	return ""
}

// NewGroup makes the group of this process, an agent, and removes groups of agents that have
// ended.
func NewGroup() *Group {
	dir := parent()
	if dir == "" {
		return nil
	}
	sweep(dir)
	for range 10 {
		g := &Group{dir: path.Join(dir, fmt.Sprintf("%s%d-%016x", prefix, os.Getpid(), rand.Uint64()))}
		if unix.Mkdir(g.dir, 0o755) != nil {
			return nil
		}
		var held bool
		if g.fd, held = lock(g.dir); held {
			return g
		}
		unix.Rmdir(g.dir) // an agent that swept at this instant has locked or removed it
	}
	return nil
}

// lock opens and locks the folder of a group. held reports whether no other process holds the
// lock, and the folder still exists.
func lock(dir string) (fd int, held bool) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false
	}
	var mine, there unix.Stat_t
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || unix.Fstat(fd, &mine) != nil ||
		unix.Stat(dir, &there) != nil || mine.Ino != there.Ino {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// left returns the groups in a directory whose names begin with start and whose agents have
// ended.
func left(dir, start string) (groups []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !groupName.MatchString(e.Name()) || !strings.HasPrefix(e.Name(), start) {
			continue
		}
		if fd, held := lock(path.Join(dir, e.Name())); held {
			unix.Close(fd)
			groups = append(groups, path.Join(dir, e.Name()))
		}
	}
	return groups
}

// leftBy returns the groups of an agent of this PID namespace that has ended.
func leftBy(agent int) []string {
	dir := parent()
	if dir == "" {
		return nil
	}
	return left(dir, fmt.Sprintf("%s%d-", prefix, agent))
}

// sweep removes the leftover groups in a directory: an agent killed together with its launcher or
// watchdog leaves its group behind. The kernel does not remove a group that has processes.
func sweep(dir string) {
	for _, g := range left(dir, prefix) {
		removeTree(g)
	}
}

// FD returns the descriptor for starting a process in the group.
func (g *Group) FD() int { return g.fd }

// Kill kills all processes in the group, if the kernel can (since 5.14).
func (g *Group) Kill() {
	if g != nil {
		kill(g.dir)
	}
}

func kill(dir string) {
	if f, err := os.OpenFile(path.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// KillGroupsOf kills all processes in the groups of an agent that has ended.
func KillGroupsOf(agent int) {
	for _, g := range leftBy(agent) {
		kill(g)
	}
}

// Remove removes the group of an agent that is ending.
func (g *Group) Remove() {
	if g != nil {
		removeIn(g.dir)
		unix.Close(g.fd)
	}
}

// RemoveGroupOf removes the group of a killed agent of this host.
func RemoveGroupOf(agent int) {
	for _, g := range leftBy(agent) {
		removeIn(g)
	}
}

// removeIn kills the rest of a group, waits for dying processes, a second at most, and removes
// the group.
func removeIn(dir string) {
	for deadline := time.Now().Add(time.Second); removeTree(dir) == unix.EBUSY &&
		time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		kill(dir)
	}
}

// removeTree removes a group and the groups below it, which a gompirun that was killed as a rank
// has left.
func removeTree(dir string) error {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			removeTree(path.Join(dir, e.Name()))
		}
	}
	return unix.Rmdir(dir)
}
