package agent

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

// A pen is a control group (v2) around the processes of the ranks: the kernel kills
// all that are in it at once, those too that start others faster than they can be
// found. It is nil where there are no such groups, or none may be made: then
// processes are found one by one.
type pen struct {
	dir string
	fd  int
}

// penPrefix begins the names of pens; the process id of their agent follows.
const penPrefix = "gompi-"

// penOf returns the folder of the pen of the agent that is process pid and in the
// group of this one; "" where there are no groups.
func penOf(pid int) string {
	for g := range cgroup.Groups("/", "cpu") {
		if g.V2 {
			return path.Join(g.Dir, penPrefix+strconv.Itoa(pid))
		}
	}
	return ""
}

func newPen() *pen {
	p := &pen{dir: penOf(os.Getpid())}
	if p.dir == "" {
		return nil
	}
	sweepPens(path.Dir(p.dir))
	if unix.Mkdir(p.dir, 0o755) != nil {
		return nil
	}
	var err error
	if p.fd, err = unix.Open(p.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		unix.Rmdir(p.dir)
		return nil
	}
	return p
}

// sweepPens removes the pens in a group whose agents are gone: when an agent is
// killed together with its launcher or warden, nobody is left to remove its pen.
// The kernel removes no group that has processes in it. An agent that has made its
// pen, and started no rank yet, is told by its being alive; if it is out of sight,
// in a container that shares the groups and not the processes, it may lose its pen
// in that moment, and its ranks are started without.
func sweepPens(group string) {
	entries, err := os.ReadDir(group)
	if err != nil {
		return
	}
	for _, e := range entries {
		number, ours := strings.CutPrefix(e.Name(), penPrefix)
		pid, err := strconv.Atoi(number)
		if !ours || err != nil {
			continue
		}
		if pid == os.Getpid() || !tree.Lives(pid) {
			unix.Rmdir(path.Join(group, e.Name()))
		}
	}
}

// kill kills what is in the pen, if the kernel can (5.14 on).
func (p *pen) kill() {
	if p != nil {
		killPen(p.dir)
	}
}

func killPen(dir string) {
	if dir == "" {
		return
	}
	if f, err := os.OpenFile(path.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		f.WriteString("1")
		f.Close()
	}
}

// remove removes the pen of an agent that ends.
func (p *pen) remove() {
	if p != nil {
		unix.Close(p.fd)
		removePen(p.dir)
	}
}

// RemovePen removes the pen of an agent of this host that was killed.
func RemovePen(agent int) { removePen(penOf(agent)) }

// removePen kills what is left in a pen and removes it. It waits for those that are
// dying, a second at most.
func removePen(dir string) {
	if dir == "" {
		return
	}
	for deadline := time.Now().Add(time.Second); unix.Rmdir(dir) == unix.EBUSY && time.Now().Before(deadline); time.Sleep(killPeriod) {
		killPen(dir)
	}
}
