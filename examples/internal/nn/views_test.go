package nn

import (
	"context"
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gompi/comm"
	"gompi/comm/commtest"
)

// layOf returns the elements of a matrix of gonum, which may be a view of another, row after row.
func layOf(m *mat.Dense) (comm.Buffer, error) {
	raw := m.RawMatrix()
	l, err := comm.Vector(raw.Rows, raw.Cols, raw.Stride)
	if err != nil {
		return comm.Buffer{}, err
	}
	return comm.Lay(raw.Data, l)
}

// A view of a matrix of gonum is sent, and received into a view of another.
func TestViewsOfGonumsMatrices(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		const rows, cols, top, left = 40, 30, 5, 7
		whole := mat.NewDense(60, 50, nil)
		view := whole.Slice(top, top+rows, left, left+cols).(*mat.Dense)
		if c.Rank() == 0 {
			view.Apply(func(i, j int, _ float64) float64 { return float64(i*cols + j + 1) }, view)
		}
		b, err := layOf(view)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			return c.Send(ctx, 1, 0, b)
		}
		if _, err := c.Recv(ctx, 0, 0, b); err != nil {
			return err
		}
		for i := range 60 {
			for j := range 50 {
				want := 0.0
				if r, k := i-top, j-left; r >= 0 && r < rows && k >= 0 && k < cols {
					want = float64(r*cols + k + 1)
				}
				if got := whole.At(i, j); got != want {
					return fmt.Errorf("row %d, column %d is %v, want %v", i, j, got, want)
				}
			}
		}
		return nil
	})
}
