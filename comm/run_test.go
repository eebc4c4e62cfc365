package comm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gompi/comm"
)

// programs are the functions of the programs that TestRunIsTheMainOfARank starts: this test's binary,
// with the name of one in its environment.
var programs = map[string]func(ctx context.Context, c *comm.Comm) error{
	"ends well": func(ctx context.Context, c *comm.Comm) error {
		fmt.Println("rank", c.Rank(), "of", c.Size())
		return nil
	},
	"fails": func(context.Context, *comm.Comm) error { return errors.New("no data") },
	"fails in a call": func(ctx context.Context, c *comm.Comm) error {
		return fmt.Errorf("halo: %w", comm.Send(ctx, c, 5, 0, []int{1}))
	},
	"ends well at a signal": func(ctx context.Context, c *comm.Comm) error {
		return interrupted(ctx)
	},
	"is interrupted": func(ctx context.Context, c *comm.Comm) error {
		if err := interrupted(ctx); err != nil {
			return err
		}
		return context.Cause(ctx)
	},
}

// interrupted sends this process SIGINT, which ends ctx.
func interrupted(ctx context.Context) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Signal(os.Interrupt); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

const programOfRun = "COMM_TEST_RUN"

func TestMain(m *testing.M) {
	if f := programs[os.Getenv(programOfRun)]; f != nil {
		comm.Run(f)
		return
	}
	os.Exit(m.Run())
}

func TestRunIsTheMainOfARank(t *testing.T) {
	for name, want := range map[string]struct {
		status              int
		stdout, errs, never string
	}{
		"ends well":             {stdout: "rank 0 of 1\n", never: "rank"},
		"fails":                 {status: 1, errs: ": rank 0: no data\n"},
		"fails in a call":       {status: 1, errs: "halo: send", never: ": rank 0: halo"},
		"ends well at a signal": {},
		"is interrupted":        {status: 1, errs: ": rank 0: interrupt signal received\n"},
	} {
		var stdout, stderr strings.Builder
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), programOfRun+"="+name)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		if status := cmd.ProcessState.ExitCode(); status != want.status || stdout.String() != want.stdout ||
			!strings.Contains(stderr.String(), want.errs) || want.never != "" && strings.Contains(stderr.String(), want.never) {
			t.Errorf("a program that %s: status %d, stdout %q, stderr %q; want %+v", name, status, &stdout, &stderr, want)
		}
	}
}
