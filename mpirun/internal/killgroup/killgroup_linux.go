// Package killgroup makes control groups (v2) around the processes of ranks: the kernel
// kills all that are in one at once, those too that start others faster than they can be
// found.
package killgroup

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
	"gompi/mpirun/internal/tree"
)

// A Group is the control group of the ranks of one agent. It is nil where there are no such
// groups, or none may be made: then processes are found one by one.
type Group struct {
	dir string
	fd  int
}

// prefix begins the names of groups; the process id of their agent follows.
const prefix = "gompi-"

// Of returns the cgroup directory for the agent with process ID pid, below the cgroup of this
// process; "" without cgroup v2.
func Of(pid int) string {
	for own := range cgroup.Groups("/", "cpu") {
		if own.V2 {
			return path.Join(own.Dir, prefix+strconv.Itoa(pid))
		}
	}
	return ""
}

// New makes the group of this process, an agent, and removes those of agents that are gone.
func New() *Group {
	g := &Group{dir: Of(os.Getpid())}
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
		if pid == os.Getpid() || !tree.Lives(pid) {
			unix.Rmdir(path.Join(parent, e.Name()))
		}
	}
}

// FD returns the descriptor by which a process can be started in the group.
func (g *Group) FD() int { return g.fd }

// Kill kills what is in the group, if the kernel can (5.14 on).
func (g *Group) Kill() {
	if g != nil {
		KillIn(g.dir)
	}
}

// KillIn kills what is in the group whose folder is dir; in none if that is "".
func KillIn(dir string) {
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

// RemoveOf removes the group of an agent of this host that was killed.
func RemoveOf(agent int) { removeIn(Of(agent)) }

// removeIn kills what is left in a group and removes it. It waits for those that are
// dying, a second at most.
func removeIn(dir string) {
	if dir == "" {
		return
	}
	for deadline := time.Now().Add(time.Second); unix.Rmdir(dir) == unix.EBUSY && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		KillIn(dir)
	}
}
