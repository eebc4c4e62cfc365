package ddp

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

// rankVariable makes this test binary a rank, and names its way of averaging.
const rankVariable = "GOMPI_DDP_TEST_RANK"

// trainings have results that do not depend on how messages travel.
var trainings = map[string]Options{
	"exact":  {Quantum: 0x1p-44},
	"small":  {Quantum: 0x1p-44, FirstBucketBytes: 4, BucketBytes: 40},
	"shards": {Shard: true},
	"hook":   {Hook: meanHook{}, FindUnused: true},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(rankVariable); name != "" {
		if err := rankProcess(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// rankProcess is one rank, a process, which meets the others by torchrun's variables.
func rankProcess(name string) error {
	ctx := context.Background()
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	model, _, err := run{opts: trainings[name], steps: 12}.rank(ctx, c)
	if err != nil {
		return err
	}
	rows, err := rowsAcross(ctx, c)
	if err != nil {
		return err
	}
	fmt.Printf("%x %s\n", model.numbers(), rows)
	return c.Close(ctx)
}

// rowsAcross averages sparse gradients and returns the result.
func rowsAcross(ctx context.Context, c *comm.Comm) (string, error) {
	d, err := New(ctx, c, tableAndLayer(), Options{})
	if err != nil {
		return "", err
	}
	for s := range 4 {
		d.ReadyRows(1, first(batchRows(c.Rank(), s, 0)), second(batchRows(c.Rank(), s, 0)))
		d.SkipRest()
		if err := d.Finish(ctx); err != nil {
			return "", err
		}
		if err := checkRows(d, c.Size(), s, 1, 1); err != nil {
			return "", err
		}
	}
	rows, values := d.Rows(1)
	return fmt.Sprint(rows, values), d.Close(ctx)
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

// Ranks that are processes share memory of their host, in which buckets lie and are averaged in
// place. Their training equals the training of goroutines that exchange messages.
func TestProcessesOfAHostTrainAsGoroutinesDo(t *testing.T) {
	for name := range trainings {
		want, _ := trainToy(t, 2, run{opts: trainings[name], steps: 12})
		outputs, err := processes(t, 2, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for rank, out := range outputs {
			if !strings.HasPrefix(out, fmt.Sprintf("%x ", want)) || out != outputs[0] {
				t.Errorf("%s: rank %d of two processes ends with other parameters than goroutines:\n%s\nwant\n%x", name,
					rank, out, want)
			}
		}
	}
}

// processes runs n ranks and returns their output.
func processes(t *testing.T, n int, name string) ([]string, error) {
	t.Helper()
	rdzv := "file://" + t.TempDir()
	outputs, errs := make([]string, n), make([]error, n)
	done := make(chan struct{})
	for rank := range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), rankVariable+"="+name, "GOMPI_RDZV="+rdzv, fmt.Sprint("RANK=", rank),
			fmt.Sprint("WORLD_SIZE=", n),
			fmt.Sprint("LOCAL_RANK=", rank), fmt.Sprint("LOCAL_WORLD_SIZE=", n))
		go func() {
			out, err := cmd.Output()
			outputs[rank], errs[rank] = string(out), err
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				errs[rank] = fmt.Errorf("rank %d: %w: %s", rank, err, failed.Stderr)
			}
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	return outputs, errors.Join(errs...)
}
