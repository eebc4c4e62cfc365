package proc

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/mpirun/internal/program"
)

const (
	// spyTime bounds the run of py-spy.
	spyTime = time.Second
	// spySize is the bytes kept of py-spy's output.
	spySize = 4 << 10
	// ClockTick is the unit of times in /proc/PID/stat, the same for all programs.
	ClockTick = time.Second / 100
)

// Worker returns the process that does the work of another: the program that a shell waits for.
func Worker(pid int) int {
	for range 16 {
		task := fmt.Sprintf("/proc/%d/task/%d/", pid, pid)
		below := Children(pid)
		if len(below) != 1 || !waits(task) {
			break
		}
		pid = below[0]
	}
	return pid
}

// waits reports whether a process waits for a child. If the kernel does not tell, shells count as
// waiting.
func waits(dir string) bool {
	where, _ := os.ReadFile(dir + "wchan")
	if len(where) > 0 && string(where) != "0" {
		return strings.Contains(string(where), "wait")
	}
	name, _ := os.ReadFile(dir + "comm")
	return strings.HasSuffix(strings.TrimSpace(string(name)), "sh")
}

// UsesGompi reports whether a process runs a Go program with gompi, or has loaded gompi's C
// library, as far as that can be seen.
func UsesGompi(pid int) bool {
	dir := dirOf(pid)
	maps, err := os.ReadFile(dir + "maps")
	if err != nil || bytes.Contains(maps, []byte("/libgompi")) {
		return true // it has ended, or is another user's: nothing is known
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

// Doing returns the command line of a process, and the state of its first thread: "sleep 1000" is
// sleeping in hrtimer_nanosleep.
func Doing(pid int) string {
	dir := dirOf(pid)
	return fmt.Sprintf("%.200q is %s", commandLine(dir), threadState(dir))
}

// Used returns a process's processor time, and its resident bytes of memory; zeros after its end.
func Used(pid int) (cpu time.Duration, resident int64) {
	f := statOf(dirOf(pid))
	if len(f) <= rss {
		return 0, 0
	}
	pages, _ := strconv.ParseInt(f[rss], 10, 64)
	return ticks(f, utime) + ticks(f, stime), max(0, pages) * int64(os.Getpagesize())
}

// UsedByTree is Used for a process and its descendants, reaped ones too.
func UsedByTree(pid int) (cpu time.Duration, resident int64) {
	cpu, resident = Used(pid)
	if f := statOf(dirOf(pid)); len(f) >= statFields {
		cpu += ticks(f, cutime) + ticks(f, cstime)
	}
	for _, child := range Children(pid) {
		c, r := UsedByTree(child)
		cpu, resident = cpu+c, resident+r
	}
	return cpu, resident
}

func commandLine(dir string) string {
	line, _ := os.ReadFile(dir + "cmdline")
	return string(bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
}

// Times returns the age and the processor time of a process.
func Times(pid int) string {
	f := statOf(dirOf(pid))
	uptime, _ := os.ReadFile("/proc/uptime")
	up, _, _ := strings.Cut(string(uptime), " ")
	if len(f) < statFields {
		return fmt.Sprintf("process %d is gone", pid)
	}
	now, _ := strconv.ParseFloat(up, 64)
	age := time.Duration(now*float64(time.Second)) - ticks(f, begun)
	return fmt.Sprintf("process %d began %v ago and has computed for %v", pid, age.Round(100*time.Millisecond),
		ticks(f, utime)+ticks(f, stime))
}

// PythonStack returns the output of py-spy about a Python program, if py-spy is in the program's
// PATH, "" for other programs. py-spy reads memory, and neither stops nor signals the program.
// PythonStack blocks for a second or so at most.
func PythonStack(pid int) string {
	dir := dirOf(pid)
	exe, _ := os.Readlink(dir + "exe")
	if !strings.HasPrefix(filepath.Base(exe), "python") {
		return ""
	}
	spy, err := program.Find("py-spy", "/", pathOf(dir))
	if err != nil {
		return "\nwhere in Python: install py-spy to see it"
	}
	ctx, cancel := context.WithTimeout(context.Background(), spyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, spy, "dump", "--nonblocking", "--pid", strconv.Itoa(pid))
	cmd.WaitDelay = spyTime / 10
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := Run(cmd); err != nil {
		fmt.Fprintf(&out, "%s: %v", spy, err)
	}
	return "\n" + string(out.Bytes()[:min(out.Len(), spySize)])
}

// Threads describes the states of a process's threads, equal states in one line.
func Threads(pid int) string {
	dir := dirOf(pid)
	tasks, err := os.ReadDir(dir + "task")
	if err != nil {
		return fmt.Sprintf("process %d: %v\n", pid, err)
	}
	count := map[string]int{}
	for _, t := range tasks {
		what := threadState(dir + "task/" + t.Name() + "/")
		count[what]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "process %d (%.200s)\n", pid, commandLine(dir))
	var whats []string
	for what := range count {
		whats = append(whats, what)
	}
	slices.Sort(whats)
	for _, what := range whats {
		fmt.Fprintf(&b, "  threads %s: %d\n", what, count[what])
	}
	return b.String()
}

// stateNames are the letters of /proc/PID/stat.
var stateNames = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "in uninterruptible sleep", 'T': "stopped", 't': "stopped by a debugger",
	'Z': "ended",
}

// threadState returns the state of one thread: "sleeping in pipe_read".
func threadState(dir string) string {
	state := "gone"
	if fields := statOf(dir); len(fields) > 0 {
		if state = stateNames[fields[0][0]]; state == "" {
			state = "in state " + fields[0]
		}
	}
	if where, _ := os.ReadFile(dir + "wchan"); len(where) > 0 && string(where) != "0" {
		state += " in " + string(where)
	}
	return state
}
