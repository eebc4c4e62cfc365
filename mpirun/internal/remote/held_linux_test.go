package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gompi/hostfile"
)

// A command that is given up may have started a process in another session, which is not killed
// with it and holds its standard output open.
func TestWhoHoldsTheOutputOfAKilledCommandIsNotWaitedFor(t *testing.T) {
	for _, name := range []string{"rsh", "scontrol"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			pidFile := filepath.Join(dir, "told")
			if err := syscall.Mkfifo(pidFile, 0o600); err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf("#!/bin/sh\nsetsid sleep 1000 &\necho $! >%s\nexec sleep 1000\n", pidFile)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			late := errors.New("late")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			go func() {
				if name == "scontrol" {
					askGRES(ctx, "7")
					ended <- late
					return
				}
				ssh, err := NewSSH([]string{name}, "", false)
				if err == nil {
					_, err = ssh.Start(ctx, hostfile.Host{Name: "h"})
				}
				ended <- err
			}()
			pid, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			holder, err := strconv.Atoi(strings.TrimSpace(string(pid)))
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Kill(holder, syscall.SIGKILL)
			cancel(late)
			select {
			case err := <-ended:
				if !errors.Is(err, late) {
					t.Errorf("%v, want %v", err, late)
				}
			case <-time.After(20 * time.Second):
				t.Error("it is waited for")
			}
		})
	}
}

// A process that an agent's command has started in another session may hold its output open after
// its end.
func TestTheOutputOfAClosedAgentEnds(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "told")
	a, err := start(exec.Command("sh", "-c", "setsid sleep 1000 & echo $! >"+pidFile+"; echo; read order"), "sh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(holder, syscall.SIGKILL)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, a.Out)
		ended <- err
	}()
	a.Close()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it is waited for")
	}
	if how := a.Wait(); !strings.HasPrefix(how, "is lost: sh exited with status 1") {
		t.Errorf("it %s, want the status of the shell whose read found no order", how)
	}
}
