package proc

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gompi/mpirun/internal/program"
)

// framesTime is the limit for gdb, which reads the debugging information of all libraries.
const framesTime = 8 * time.Second

// debuggers bounds the number of programs under inspection: each inspection reads their
// libraries.
var debuggers = make(chan struct{}, 4)

//go:embed frames.py
var framesScript string

// Frames returns the stacks of a C, C++ or Fortran program's threads, from gdb if that is in the
// program's PATH, otherwise from Walk. gdb stops the program for a moment.
func Frames(pid int) string {
	debuggers <- struct{}{}
	defer func() { <-debuggers }()
	ctx, cancel := context.WithTimeout(context.Background(), framesTime)
	defer cancel()
	gdb, err := program.Find("gdb", "/", pathOf(dirOf(pid)))
	if err == nil {
		return framesOf(ctx, gdb, pid)
	}
	found := walked(ctx, "", strconv.Itoa(pid))
	if found == "" {
		return "where in the program: install gdb to see it\n"
	}
	return found + "install gdb to see more\n"
}

// CrashFrames returns the frames of a crash by its record, innermost first; "" if they are unknown.
func CrashFrames(record string) string {
	ctx, cancel := context.WithTimeout(context.Background(), framesTime)
	defer cancel()
	return walked(ctx, record) // beside debuggers: it is brief, and asked for once
}

// walked returns the output of Walk, which gets input, "" if that fails.
func walked(ctx context.Context, input string, of ...string) string {
	var found bytes.Buffer
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{os.Args[0], WalkFlag}, of...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(input), &found
	if Run(cmd) != nil {
		return ""
	}
	return found.String()
}

// framesOf gets the stacks from gdb.
func framesOf(ctx context.Context, gdb string, pid int) string {
	script, err := os.CreateTemp("", "gompi-frames-*.py")
	if err != nil {
		return "gdb: " + err.Error() + "\n"
	}
	defer os.Remove(script.Name())
	if _, err = script.WriteString(framesScript); err == nil {
		err = script.Close()
	}
	if err != nil {
		return "gdb: " + err.Error() + "\n"
	}
	cmd := exec.CommandContext(ctx, gdb, "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", strconv.Itoa(pid),
		"-x", script.Name())
	cmd.WaitDelay = framesTime / 10
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = Run(cmd)
	var b strings.Builder
	for line := range strings.Lines(out.String()) { // gdb also prints what it loads
		if line, ours := strings.CutPrefix(line, "="); ours {
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		b.WriteString(gdb + " found no frame of the program: ")
		if err != nil {
			b.WriteString(err.Error() + ", ")
		}
		last := strings.TrimSpace(errs.String())
		b.WriteString(last[strings.LastIndexByte(last, '\n')+1:] + "\n")
	}
	return b.String()
}

// pathOf returns the PATH of the process in a folder of /proc.
func pathOf(dir string) (path string) {
	vars, _ := variables(dir)
	path, _ = program.EnvValue(vars, "PATH")
	return path
}
