package runner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(script string, env ...string) Command {
	return Command{Args: []string{"sh", "-c", script}, Env: env}
}

func TestRunReturnsWhatTheCommandWrote(t *testing.T) {
	out, err := shell(`echo "$WORD"; echo unseen >&2`, "WORD=seen").Run(t.Context(), time.Minute)
	if err != nil || string(out.Stdout) != "seen\n" || out.Took <= 0 {
		t.Errorf("got %q after %v, error %v; want seen", out.Stdout, out.Took, err)
	}
}

func TestAFailedCommandTellsItsLastWords(t *testing.T) {
	out, err := shell(`echo half; printf 'the reason\n\n-----\n' >&2; exit 3`).Run(t.Context(), time.Minute)
	if want := "exit status 3: the reason"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if string(out.Stdout) != "half\n" {
		t.Errorf("got %q, want what it wrote before it failed", out.Stdout)
	}
	if _, err := (Command{Args: []string{"/no/such/program"}}).Run(t.Context(), time.Minute); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a program that is not there: %v, want %v", err, os.ErrNotExist)
	}
}

func TestTheTimeLimitEndsAllThatTheCommandStarted(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"a child that stays in the group", `sleep 1000 & echo $! >$DIR/pid; wait`},
		{"a child with a session of its own", `setsid sleep 1000 & sleep 0.05; echo $! >$DIR/pid; wait`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			started := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			why := errors.New("the test has seen enough")
			go func() { // ends when the command has told its child
				defer close(started)
				for childOf(dir) == 0 && t.Context().Err() == nil {
					time.Sleep(time.Millisecond) // a file cannot be waited for
				}
				cancel(why)
			}()
			_, err := shell(tt.script, "DIR="+dir).Run(ctx, time.Minute)
			<-started
			if !errors.Is(err, why) {
				t.Errorf("error %v, want %v", err, why)
			}
			child := childOf(dir)
			for deadline := time.Now().Add(time.Minute); alive(child); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					syscall.Kill(child, syscall.SIGKILL)
					t.Fatal("the child lives on")
				}
			}
		})
	}
}

func TestTheTimeLimitIsNamed(t *testing.T) {
	_, err := shell(`exec sleep 1000`).Run(t.Context(), 10*time.Millisecond)
	if !errors.Is(err, ErrTimeLimit) || !strings.Contains(err.Error(), "time limit of 10ms") {
		t.Errorf("error %v, want one that names the limit", err)
	}
}

// childOf returns the process that a script has told in the file pid, 0 if it
// has not yet.
func childOf(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "pid"))
	line, complete := strings.CutSuffix(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil || !complete {
		return 0
	}
	return pid
}

// alive reports whether a process runs; one that ended and is not yet reaped
// does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
