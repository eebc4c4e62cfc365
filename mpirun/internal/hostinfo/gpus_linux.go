package hostinfo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"

	"gompi/cudaops/topo"
	"gompi/internal/env"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
	"gompi/mpirun/internal/program"
)

const (
	// TopoTime bounds the run of gompi-topo. An idle driver wakes up in a second for each GPU. The
	// launcher waits longer than this after another host has failed.
	TopoTime = 10 * time.Second
	// UseTime is TopoTime for top, which waits for stall.SurveyTime.
	UseTime = 2 * time.Second
)

// GPUs returns this host's GPUs: the report of gompi-topo within limit, or else the kernel's list,
// with the reason.
func GPUs(limit time.Duration) *ctl.GPUs {
	h, err := askTopo(limit)
	if err == nil && h.Trouble != "" {
		err = errors.New(h.Trouble)
	}
	if err != nil {
		h = topo.FromKernel(os.DirFS("/"))
		h.Trouble = err.Error()
	}
	m := new(ctl.GPUs)
	m.Found, _ = json.Marshal(h) // plain data
	m.Visible, m.Limited = os.LookupEnv(env.CUDADevices)
	return m
}

// askTopo runs gompi-topo. It blocks for limit at most.
func askTopo(limit time.Duration) (*topo.Host, error) {
	path, err := topoPath()
	if err != nil {
		return nil, err
	}
	out, err := output(limit, nil, "", path)
	var h *topo.Host
	if err == nil {
		h, err = topo.Parse(out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// output returns the output of a program. With its children it is killed after limit.
func output(limit time.Duration, vars []string, dir, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = vars, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	(&program.Program{Path: path, Dir: dir}).Touch()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := proc.Run(cmd)
	if last := lastLine(stderr.String()); err != nil && last != "" {
		err = fmt.Errorf("%w: %.200s", err, last)
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer after %v", limit)
	}
	return out.Bytes(), err
}

// topoPath returns the gompi-topo beside this gompirun, or the first in PATH.
func topoPath() (string, error) {
	const name = "gompi-topo"
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not beside gompirun, nor in PATH", name)
	}
	return path, nil
}

// lastLine returns the last line of a program's output, without control characters.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, lines[len(lines)-1])
}
