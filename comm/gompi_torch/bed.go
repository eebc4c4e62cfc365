//go:build linux

// Package gompitorch is the Go side of the tests of gompi_torch, which is C++ and Python: it runs
// scripts in a Python that has gompi_torch. make torch names the Python.
package gompitorch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Python names a Python that has gompi_torch.
const Python = "GOMPI_TORCH_PYTHON"

// A Bed has the programs that run the scripts: gompirun, as make has built it, and Python.
type Bed struct{ Gompirun, Python string }

// NewBed returns the bed of a package that lies two folders below the top. It skips the test where
// make torch has named no Python.
func NewBed(t *testing.T) Bed {
	t.Helper()
	python := os.Getenv(Python)
	if python == "" {
		t.Skip("make torch: it wants a Python that has gompi_torch")
	}
	gompirun, err := filepath.Abs("../../bin/gompirun")
	if err == nil {
		_, err = os.Stat(gompirun)
	}
	if err != nil {
		t.Fatalf("%v: want the gompirun that make build makes", err)
	}
	return Bed{gompirun, python}
}

// Run runs a command, which has to end by itself, and returns its output and its status.
func (b Bed) Run(t *testing.T, argv ...string) (output string, status int) {
	t.Helper()
	return b.RunFor(t, 3*time.Minute, argv...)
}

// RunFor is Run for a command that may take so long.
func (b Bed) RunFor(t *testing.T, limit time.Duration, argv ...string) (output string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// The scripts' tensors are in host memory. Where torch sees a GPU it takes that for hooks and
	// maps.
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "CUDA_VISIBLE_DEVICES=",
		"PATH="+filepath.Dir(b.Python)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its children: mp.spawn's outlive it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left
		}
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// RunGloo is Run for ranks that use gloo. With torch 2.15 a rank may abort when it has done all: a
// thread of gloo that still holds a tensor of Python frees it while the interpreter ends
// (github.com/pytorch/pytorch/issues/190489). Such a run is made again, three times at most.
func (b Bed) RunGloo(t *testing.T, argv ...string) (output string, status int) {
	t.Helper()
	for range 4 {
		output, status = b.Run(t, argv...)
		if status == 0 || !strings.Contains(output, "terminate called without an active exception") {
			break
		}
	}
	return output, status
}

// TwoHosts are gompirun's flags for two hosts of two ranks, which are this one.
func TwoHosts(t *testing.T) []string {
	t.Helper()
	rsh := filepath.Join(t.TempDir(), "rsh")
	if err := os.WriteFile(rsh, []byte("#!/bin/sh\nshift\nexec sh -c \"$*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"-rsh", rsh, "-H", "127.0.0.2:2,127.0.0.3:2"}
}
