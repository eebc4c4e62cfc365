package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gompi/comm"
)

// Mean returns, on every rank, the mean of a quantity over the samples of all ranks. This rank's n
// samples add up to sum. Every sample has the same weight, however uneven the ranks' shares are.
// Without samples the mean is NaN.
func Mean(ctx context.Context, c *comm.Comm, sum float64, n int) (float64, error) {
	pair := []float64{sum, float64(n)}
	if err := comm.Allreduce(ctx, c, pair, pair, comm.Sum); err != nil {
		return 0, fmt.Errorf("ddp: mean: %w", err)
	}
	return pair[0] / pair[1], nil
}

// OnRankZero calls fn on rank 0 alone and returns its error on every rank, so that all continue or
// none: for reading and writing files.
func OnRankZero(ctx context.Context, c *comm.Comm, fn func() error) error {
	var err error
	text := ""
	if c.Rank() == 0 {
		if err = fn(); err != nil {
			text = cmp.Or(err.Error(), "an error without text")
		}
	}
	text, lost := bcastText(ctx, c, 0, text)
	switch {
	case err != nil:
		return err
	case lost != nil:
		return lost
	case text != "":
		return errors.New("rank 0: " + text)
	}
	return nil
}

// RankZeroFirst calls fn on rank 0 and then, if it succeeded, on the other ranks, all at once. It
// is for work whose result is a file, such as a download. If fn fails on rank 0, every rank returns
// that error; otherwise each returns its own.
func RankZeroFirst(ctx context.Context, c *comm.Comm, fn func() error) error {
	if err := OnRankZero(ctx, c, fn); err != nil || c.Rank() == 0 {
		return err
	}
	return fn()
}

// bcastText returns root's text on every rank.
func bcastText(ctx context.Context, c *comm.Comm, root int, text string) (string, error) {
	size := []int{len(text)}
	err := comm.Bcast(ctx, c, root, size)
	data := make([]byte, size[0])
	copy(data, text)
	if err == nil {
		err = comm.Bcast(ctx, c, root, data)
	}
	if err != nil {
		return "", fmt.Errorf("ddp: %w", err)
	}
	return string(data), nil
}
