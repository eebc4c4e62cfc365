package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/env"
)

func TestEnvironmentIsRefusedWithWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ name, value, quote string }{
		{env.Tune, "allreduce:0-16k:quickly", `"quickly"`},
		{env.Tune, "allreduce", `"allreduce"`},
		{env.Tune, "alreduce:ring", `"alreduce"`},
		{env.Tune, "allreduce:16x-:circulant", `"16x"`},
		{env.Tune, "barrier:dissemination;bcast:np:binomial", `"np"`},
		{env.Eager, "64KB", `"64KB"`},
		{env.Transport, "udp", `"udp"`},
		{env.Deterministic, "perhaps", `"perhaps"`},
		{env.Log, "chatty", `"chatty"`},
	} {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			_, err := comm.Init(t.Context()) // a world of one checks it too
			if err == nil || !strings.Contains(err.Error(), tt.name) || !strings.Contains(err.Error(), tt.quote) {
				t.Errorf("got %v, want an error that names %s and quotes %s", err, tt.name, tt.quote)
			}
		})
	}
}

func TestEnvironmentSetsTheEagerLimit(t *testing.T) {
	for value, want := range map[string]int{"": 64 << 10, "100": 100, "1K": 1024, "0": 0} {
		t.Setenv(env.Eager, value)
		synctest.Test(t, func(t *testing.T) {
			commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
				within, beyond := c.Isend(0, 0, comm.Of(make([]byte, want))),
					c.Isend(0, 0, comm.Of(make([]byte, want+1)))
				if !within.Done() || beyond.Done() {
					return fmt.Errorf("%s=%q: %d bytes done: %v, one more: %v", env.Eager, value, want, within.Done(),
						beyond.Done())
				}
				return nil
			})
		})
	}
}

func TestConfigGoesBeforeTheEnvironment(t *testing.T) {
	t.Setenv(env.Tune, "nonsense")
	t.Setenv(env.Eager, "nonsense")
	t.Setenv(env.Transport, "nonsense")
	t.Setenv(env.Log, "nonsense")
	cfg := comm.Config{Logger: slog.New(slog.DiscardHandler), EagerLimit: 10, Tuning: "barrier:dissemination",
		Transport: "tcp"}
	commtest.RunConfig(t, 2, cfg, func(ctx context.Context, c *comm.Comm) error { return comm.Barrier(ctx, c) })
}

// A world of one needs no launcher.
func TestInitAloneIsAWorldOfOne(t *testing.T) {
	c, err := comm.Init(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Size() != 1 || c.Rank() != 0 || c.Host(0) == "" {
		t.Errorf("got %v on host %q", c, c.Host(0))
	}
	e := integers[int64]()
	for _, kind := range everyKind {
		if err := answerAll(t.Context(), c, e, questions(kind, 1, []int{0, 3}, []comm.Op{comm.Sum})); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestInitRefusesToBeOneOfSeveralJobsOfOne(t *testing.T) {
	t.Setenv("OMPI_COMM_WORLD_RANK", "1")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "4")
	_, err := comm.Init(t.Context())
	var e *comm.Error
	if !errors.As(err, &e) || e.Op != "init" || strings.Contains(err.Error(), "rank -1") ||
		!strings.Contains(err.Error(), "Open MPI") {
		t.Errorf("got %v, want a refusal that names the launcher and no rank", err)
	}
}

// The table of algorithms in force comes a line at a time, in words.
func TestTuningIsLogged(t *testing.T) {
	var out bytes.Buffer
	cfg := comm.Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Tuning: "allreduce:0-1k:halving"}
	commtest.RunConfig(t, 4, cfg, func(ctx context.Context, c *comm.Comm) error { return nil })
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if !strings.Contains(line, "part=tuning") || strings.Contains(line, `\n`) {
			t.Errorf("line %q: want one of the table", line)
		}
	}
	for _, want := range []string{"barrier 0-: ", "alltoall 0-: ", `"allreduce 0-: messages: halving"`} {
		if strings.Count(out.String(), want) < 1 {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

// A collective that fails on one rank alone breaks the communicator, for the
// others would wait.
func TestFailureOfOneRankInACollectiveEndsItForAll(t *testing.T) {
	cfg := comm.Config{Tuning: "allreduce:direct"} // each rank combines
	synctest.Test(t, func(t *testing.T) {
		commtest.Ranks(t.Context(), 3, cfg, func(ctx context.Context, c *comm.Comm) error {
			x := comm.Of(make([]int, 1))
			if c.Rank() == 2 {
				if err := inside(c).ReduceWithout(ctx, x, x); err == nil {
					t.Error("a reduction without an operator succeeded")
				}
				return nil
			}
			err := c.Allreduce(ctx, x, x, comm.Sum)
			if err == nil { // the other's part came before its failure
				err = comm.Barrier(ctx, c)
			}
			if problem := wrongCause(err, 2, "failed in allreduce"); problem != nil {
				t.Errorf("rank %d: %v", c.Rank(), problem)
			}
			return nil
		})
	})
}
