package agent

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
)

const (
	// mostLookedInto is how many ranks of a host are told of in detail.
	mostLookedInto = 8
	// spyTime is how long py-spy may take, of which the agent does nothing else.
	spyTime = time.Second
	// clockTick is the unit of times in /proc/PID/stat, the same for all programs.
	clockTick = time.Second / 100
)

// lookInto adds what the kernel and py-spy know of ranks that have not called Init,
// because their programs never will. They hear nothing of it.
func (a *agent) lookInto(m *ctl.Doing) {
	var spies sync.WaitGroup
	for i, left := 0, mostLookedInto; i < len(m.Ranks); i++ {
		d := &m.Ranks[i]
		p := a.ranks[a.local[d.Rank]]
		if a.segment.State(p.index) != seg.Starting || p.pmi.state != silent {
			continue
		}
		pid := working(p.pid)
		if usesGompi(pid) {
			continue
		}
		dir := fmt.Sprintf("/proc/%d/", pid)
		d.Text = fmt.Sprintf("is no gompi program: %.200q is %s", commandLine(dir), threadState(dir))
		if left--; left < 0 {
			continue
		}
		d.Details = times(dir, pid)
		if len(p.said) > 0 {
			d.Details += fmt.Sprintf("\nits last output:\n%s", bytes.TrimRight(lastLines(p.said, saidLines), "\n"))
		}
		spies.Go(func() { d.Details += pythonStack(dir, pid) })
	}
	spies.Wait()
}

// working returns the process that does the work of the one with this id: where a
// shell waits for a program, the program.
func working(pid int) int {
	for range 16 {
		task := fmt.Sprintf("/proc/%d/task/%d/", pid, pid)
		list, _ := os.ReadFile(task + "children")
		children := strings.Fields(string(list))
		if len(children) != 1 || !waits(task) {
			break
		}
		pid, _ = strconv.Atoi(children[0]) // the kernel's
	}
	return pid
}

// waits reports whether a process waits for a child. Where the kernel does not tell,
// shells do.
func waits(dir string) bool {
	where, _ := os.ReadFile(dir + "wchan")
	if len(where) > 0 && string(where) != "0" {
		return strings.Contains(string(where), "wait")
	}
	name, _ := os.ReadFile(dir + "comm")
	return strings.HasSuffix(strings.TrimSpace(string(name)), "sh")
}

// usesGompi reports whether a process runs a Go program with gompi in it, or has
// loaded its C library, as far as that can be seen.
func usesGompi(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/", pid)
	maps, err := os.ReadFile(dir + "maps")
	if err != nil || bytes.Contains(maps, []byte("/libgompi")) {
		return true // it is gone, or another user's: nothing can be said
	}
	info, err := buildinfo.ReadFile(dir + "exe")
	if err != nil {
		return false
	}
	uses := info.Main.Path == "gompi"
	for _, module := range info.Deps {
		uses = uses || module.Path == "gompi"
	}
	return uses
}

func commandLine(dir string) string {
	line, _ := os.ReadFile(dir + "cmdline")
	return string(bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
}

// times says how long a process has run and computed.
func times(dir string, pid int) string {
	stat, _ := os.ReadFile(dir + "stat")
	uptime, _ := os.ReadFile("/proc/uptime")
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	up, _, _ := strings.Cut(string(uptime), " ")
	const utime, stime, begun = 14 - 3, 15 - 3, 22 - 3 // by proc(5), from the state on
	if len(f) <= begun {
		return fmt.Sprintf("process %d is gone", pid)
	}
	ticks := func(field int) time.Duration {
		n, _ := strconv.ParseInt(f[field], 10, 64)
		return time.Duration(n) * clockTick
	}
	now, _ := strconv.ParseFloat(up, 64)
	age := time.Duration(now*float64(time.Second)) - ticks(begun)
	return fmt.Sprintf("process %d began %v ago and has computed for %v", pid, age.Round(100*time.Millisecond), ticks(utime)+ticks(stime))
}

// pythonStack returns what py-spy says of a Python program, where py-spy is in the
// PATH of that. It reads the program's memory, and neither stops nor signals it.
func pythonStack(dir string, pid int) string {
	exe, _ := os.Readlink(dir + "exe")
	if !strings.HasPrefix(filepath.Base(exe), "python") {
		return ""
	}
	environ, _ := os.ReadFile(dir + "environ")
	path := ""
	for kv := range strings.SplitSeq(string(environ), "\x00") {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	spy, err := find("py-spy", "/", path)
	if err != nil {
		return "\nwhere in Python: install py-spy to see it"
	}
	ctx, cancel := context.WithTimeout(context.Background(), spyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, spy, "dump", "--nonblocking", "--pid", strconv.Itoa(pid))
	cmd.WaitDelay = spyTime / 10
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%s: %v", spy, err)
	}
	return "\n" + string(out[:min(len(out), tailSize)])
}
