//go:build linux

package mpirun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"gompi/comm"
	"gompi/mpirun/internal/testbed"
)

// partingMain is a program whose ranks name different roots in their first collective,
// with few elements, which is the last one but for Close and, if asked for, a Bcast.
func partingMain() {
	signal.Ignore(syscall.SIGTERM) // sent when another rank has failed
	err := part(context.Background(), os.Args[1], os.Args[2] == "bcast")
	fmt.Printf("rank %s: mismatch %v: %v\n", os.Getenv("RANK"), errors.Is(err, comm.ErrMismatch), err)
	if err != nil {
		os.Exit(1)
	}
}

func part(ctx context.Context, what string, more bool) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	root, few, many := c.Rank()%2, make([]int64, 3), make([]int64, 3*c.Size())
	switch what {
	case "bcast":
		err = comm.Bcast(ctx, c, root, few)
	case "scatter":
		err = comm.Scatter(ctx, c, root, many, few)
	case "gather":
		err = comm.Gather(ctx, c, root, few, many)
	case "reduce":
		err = comm.Reduce(ctx, c, root, few, few, comm.Sum)
	}
	if err == nil && more {
		err = comm.Bcast(ctx, c, 0, few)
	}
	if closed := c.Close(ctx); err == nil {
		err = closed
	}
	return err
}

// parts runs the program and fails the test unless every rank learns both calls.
func parts(t *testing.T, cmd *exec.Cmd, np int, what string) {
	t.Helper()
	out, err := cmd.Output()
	want := regexp.MustCompile(fmt.Sprintf(`(?m)^rank \d: mismatch true: .* collective 1: .* called %s\(.*root [01]\).* called %[1]s\(.*root [01]\)$`, what))
	if cmd.ProcessState.ExitCode() != 1 || len(want.FindAll(out, -1)) != np {
		t.Errorf("%v: %v, %s\nwant status 1, and of each rank a line like %v", cmd.Args, err, out, want)
	}
}

func TestRootsThatDifferInTheLastCollective(t *testing.T) {
	for _, np := range []int{2, 4} {
		for _, transport := range transports {
			for _, what := range []string{"bcast", "scatter", "gather", "reduce"} {
				for _, then := range []string{"close", "bcast"} {
					t.Run(fmt.Sprint(np, transport, what, then), func(t *testing.T) {
						t.Parallel() // ranks wait before they ask the others
						cmd := exec.Command("gompirun", "-np", fmt.Sprint(np), "-oversubscribe", "parting", what, then)
						cmd.Env = append(os.Environ(), transport)
						parts(t, cmd, np, what)
					})
				}
			}
		}
	}
}

func TestRootsThatDifferBetweenHosts(t *testing.T) {
	bed := testbed.New(t, 2)
	for _, what := range []string{"bcast", "scatter", "gather", "reduce"} {
		for _, then := range []string{"close", "bcast"} {
			t.Run(what+" "+then, func(t *testing.T) {
				t.Parallel()
				parts(t, exec.Command("gompirun", "-rsh", bed.RSH(), "-H", "host1:2,host2:2", "parting", what,
					then), 4, what)
			})
		}
	}
}
