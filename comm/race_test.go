//go:build race

package comm_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gompi/comm"
)

// touching has programs that touch the buffer of a nonblocking operation with themselves, and
// whether the race detector is to report it.
var touching = []struct {
	name     string
	reported bool
	program  func(ctx context.Context, c *comm.Comm, out, in []int) error
}{
	{"write to a send", true, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		r := comm.Isend(c, 0, 1, out)
		out[3] = 1
		return comm.WaitAll(ctx, r, comm.Irecv(c, 0, 1, in))
	}},
	{"read of a send", false, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		r := comm.Isend(c, 0, 1, out)
		fmt.Println(out[3])
		return comm.WaitAll(ctx, r, comm.Irecv(c, 0, 1, in))
	}},
	{"read of a receive", true, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		r := comm.Irecv(c, 0, 1, in)
		fmt.Println(in[2])
		return comm.WaitAll(ctx, r, comm.Isend(c, 0, 1, out))
	}},
	{"write to a receive", true, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		r := comm.Irecv(c, 0, 1, in)
		in[2] = 1
		return comm.WaitAll(ctx, r, comm.Isend(c, 0, 1, out))
	}},
	{"write behind WaitAll", false, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		err := comm.WaitAll(ctx, comm.Irecv(c, 0, 1, in), comm.Isend(c, 0, 1, out))
		out[3], in[2] = 1, 1
		return err
	}},
	{"write behind Test and Done", false, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		r, s := comm.Irecv(c, 0, 1, in), comm.Isend(c, 0, 1, out)
		for done := false; !done; {
			var err error
			if _, done, err = r.Test(); err != nil {
				return err
			}
		}
		for !s.Done() {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		out[3], in[2] = 1, 1
		return nil
	}},
	{"write behind Cancel", false, func(ctx context.Context, c *comm.Comm, out, in []int) error {
		if r := comm.Irecv(c, 0, 1, in); r.Cancel() {
			in[2] = 1
		}
		return nil
	}},
}

func init() {
	for _, p := range touching {
		programs[p.name] = func(ctx context.Context, c *comm.Comm) error {
			return p.program(ctx, c, make([]int, 8), make([]int, 8))
		}
	}
}

func TestTheRaceDetectorReportsBuffersTouchedTooEarly(t *testing.T) {
	for _, p := range touching {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), programOfRun+"="+p.name)
		out, err := cmd.CombinedOutput()
		reported := strings.Contains(string(out), "WARNING: DATA RACE") && strings.Contains(string(out), "race_test.go")
		if reported != p.reported || (err != nil) != p.reported {
			t.Errorf("%s: reported %v, want %v; %v\n%s", p.name, reported, p.reported, err, out)
		}
	}
}
