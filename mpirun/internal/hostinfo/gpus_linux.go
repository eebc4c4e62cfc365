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
)

// topoTime is how long gompi-topo may take. A driver that is not in use is not
// kept awake, and then takes a second or so for each GPU. It is less than the
// launcher waits once another host has failed.
const topoTime = 10 * time.Second

// GPUs returns what GPUs there are on this host: what gompi-topo reports, or else what the kernel
// does, with the reason.
func GPUs() *ctl.GPUs {
	h, err := askTopo()
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

// askTopo runs gompi-topo. It blocks for topoTime at most.
func askTopo() (*topo.Host, error) {
	path, err := topoPath()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), topoTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = proc.Run(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: no answer after %v", path, topoTime)
	case err != nil:
		return nil, fmt.Errorf("%s: %w%s", path, err, lastLine(stderr.String()))
	}
	h, err := topo.Parse(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

// topoPath returns the gompi-topo beside this gompirun, or that of PATH.
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

// lastLine returns the end of what a program has printed, to be put after a reason.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return fmt.Sprintf(": %.200s", last)
}
