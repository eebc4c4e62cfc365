package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A run is a line together with a face.
type run struct {
	face string
	line
}

// name returns the line as the list of known lines spells it.
func (r run) name() string { return r.dir + "/" + r.text }

func (r run) key() string { return r.face + "/" + r.name() }

// binary returns the program's path below the folder for work.
func (r run) binary() string { return filepath.Join(r.face, r.dir, r.program) }

// A verdict is how a run ended.
type verdict string

const (
	passed   verdict = "passed"
	failed   verdict = "failed"
	timedOut verdict = "timed out"
	notBuilt verdict = "not built"
	leftOut  verdict = "left out"
)

// An outcome is the result of a run.
type outcome struct {
	face, dir, text string
	verdict         verdict
	seconds         float64
	first           string // the first line of output that is wrong
}

func (o outcome) key() string { return o.face + "/" + o.dir + "/" + o.text }

// runAll runs lines, some at once. missing says why programs could not be built.
func (s *suite) runAll(todo []run, missing map[string]string) (all []outcome) {
	var mu sync.Mutex
	room := memory()
	inParallel(s.jobs, todo, func(r run) {
		o := outcome{face: r.face, dir: r.dir, text: r.text}
		switch why := missing[r.binary()]; {
		case missing[r.face] != "":
			o.verdict, o.first = notBuilt, missing[r.face]
		case why != "":
			o.verdict, o.first = notBuilt, why
		case r.memory > room:
			o.verdict, o.first = leftOut, fmt.Sprintf("it needs %g GiB of memory, of which there are %.0f",
				r.memory, room)
		default:
			s.try(r, &o)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, o)
		if o.verdict != passed {
			fmt.Printf("%-9s %s: %s\n", o.verdict, r.key(), o.first)
		}
	})
	return all
}

// memory returns the free GiB, less a reserve for the system.
func memory() float64 {
	text, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	kib, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return kib/(1<<20)*0.8 - 1
}

// try runs r.
func (s *suite) try(r run, o *outcome) {
	limit := r.limit
	if limit == 0 {
		limit = s.limit
	}
	binary, err := filepath.Abs(filepath.Join(s.work, r.binary()))
	if err != nil {
		o.verdict, o.first = failed, err.Error()
		return
	}
	args := []string{"-np", strconv.Itoa(r.ranks), "--oversubscribe", "-mpi-lib", "gompi", "--timeout",
		fmt.Sprint(limit.Seconds()), binary}
	ctx, cancel := context.WithTimeout(context.Background(), limit+30*time.Second)
	defer cancel()
	gompirun, err := filepath.Abs(s.gompirun)
	if err != nil {
		o.verdict, o.first = failed, err.Error()
		return
	}
	c := exec.CommandContext(ctx, gompirun, append(args, r.args...)...)
	c.Dir = filepath.Dir(binary)
	if path.Base(r.dir) == "io" { // most have the same file
		if c.Dir, err = os.MkdirTemp(c.Dir, r.program); err != nil {
			o.verdict, o.first = failed, err.Error()
			return
		}
		defer os.RemoveAll(c.Dir)
	}
	c.Env = append(os.Environ(), r.env...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	var out, text bytes.Buffer
	c.Stdout, c.Stderr = &out, &text
	begin := time.Now()
	err = c.Run()
	o.seconds = time.Since(begin).Seconds()
	o.verdict, o.first = judge(r, out.String(), text.String(), err)
	s.keep(r, out.Bytes(), text.Bytes())
}

// timeoutStatus is the exit status of gompirun after --timeout ended the job.
const timeoutStatus = 124

// judge returns the verdict on a run, and the first wrong line of its output.
func judge(r run, out, text string, err error) (verdict, string) {
	status := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	}
	if r.status { // the test may be of a time limit
		if status != 0 {
			return passed, ""
		}
		return failed, "it ended with 0"
	}
	if status == timeoutStatus || status < 0 {
		return timedOut, firstLine(out + text)
	}
	fine := false
	for _, l := range strings.Split(out, "\n") {
		switch strings.ToLower(strings.TrimSpace(l)) {
		case "no errors":
			fine = true
		case "", "test passed":
		default:
			return failed, strings.TrimSpace(l)
		}
	}
	if err != nil || !fine {
		return failed, firstLine(text + fmt.Sprintf("\nstatus %d, no \"No Errors\"", status))
	}
	return passed, ""
}

func firstLine(text string) string {
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.EqualFold(l, "no errors") {
			return strings.ReplaceAll(l, "\t", " ")
		}
	}
	return ""
}

// keep writes the output of a run to a file.
func (s *suite) keep(r run, out, text []byte) {
	file := filepath.Join(s.work, "output", r.face, r.dir,
		strings.ReplaceAll(strings.ReplaceAll(r.text, " ", "_"), "/", "_"))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
		_ = os.WriteFile(file, append(append(out, "---- stderr\n"...), text...), 0o644)
	}
}
