package proc

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
)

// A Group is the control group (v2) of the ranks of one agent: the kernel kills all that are in it
// at once, those too that start others faster than they can be found. It is nil where there are no
// such groups, or none may be made: then processes are found one by one.
type Group struct {
	dir string
	fd  int
}

// prefix begins the names of groups; the process id of their agent follows.
const prefix = "gompi-"

// GroupOf returns the cgroup directory for the agent with process ID pid, below the cgroup of this
// process; "" without cgroup v2.
func GroupOf(pid int) string {
	for own := range cgroup.Groups("/", "cpu") {
		if own.V2 {
			return path.Join(own.Dir, prefix+strconv.Itoa(pid))
		}
	}
	return ""
}

// NewGroup makes the group of this process, an agent, and removes those of agents that are gone.
func NewGroup() *Group {
	g := &Group{dir: GroupOf(os.Getpid())}
	if g.dir == "" {
		return nil
	}
	sweep(path.Dir(g.dir))
	if unix.Mkdir(g.dir, 0o755) != nil {
		return nil
	}
	var err error
	if g.fd, err = unix.Open(g.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		unix.Rmdir(g.dir)
		return nil
	}
	return g
}

// sweep removes the groups below parent whose agents are gone: an agent that is killed together
// with its launcher or watchdog leaves its group behind. The kernel does not remove a group that
// has processes. A group without processes is kept if its agent is alive. An agent in another PID
// namespace looks dead: before its first rank starts it may lose its group, and its ranks are
// started without one.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), prefix)
		pid, err := strconv.Atoi(number)
		if !ours || err != nil {
			continue
		}
		if pid == os.Getpid() || !Lives(pid) {
			unix.Rmdir(path.Join(parent, e.Name()))
		}
	}
}

// FD returns the descriptor by which a process can be started in the group.
func (g *Group) FD() int { return g.fd }

// Kill kills what is in the group, if the kernel can (5.14 on).
func (g *Group) Kill() {
	if g != nil {
		KillGroup(g.dir)
	}
}

// KillGroup kills what is in the group whose folder is dir; in none if that is "".
func KillGroup(dir string) {
	if dir == "" {
		return
	}
	if f, err := os.OpenFile(path.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// Remove removes the group of an agent that ends.
func (g *Group) Remove() {
	if g != nil {
		unix.Close(g.fd)
		removeIn(g.dir)
	}
}

// RemoveGroupOf removes the group of an agent of this host that was killed.
func RemoveGroupOf(agent int) { removeIn(GroupOf(agent)) }

// removeIn kills what is left in a group and removes it. It waits for those that are
// dying, a second at most.
func removeIn(dir string) {
	if dir == "" {
		return
	}
	for deadline := time.Now().Add(time.Second); unix.Rmdir(dir) == unix.EBUSY && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		KillGroup(dir)
	}
}
