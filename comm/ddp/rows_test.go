package ddp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

const (
	tableRows = 50
	rowLength = 3
)

// batchRows are the rows that a rank's pass reaches, some of them twice, on some ranks none, and
// their gradients: small whole numbers.
func batchRows(rank, step, pass int) (rows []int32, values []float32) {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(10*step+pass)))
	for range (rank + step) % 3 * 7 {
		rows = append(rows, int32(r.IntN(tableRows)))
		for range rowLength {
			values = append(values, float32(r.IntN(100)-50))
		}
	}
	return rows, values
}

// denseMean is the reference: the gradients of all ranks and passes in a whole table, by row.
func denseMean(size, step, passes int) map[int32][rowLength]float32 {
	table := map[int32][rowLength]float32{}
	for rank := range size {
		for pass := range passes {
			rows, values := batchRows(rank, step, pass)
			for k, r := range rows {
				sum := table[r]
				for j := range sum {
					sum[j] += values[k*rowLength+j]
				}
				table[r] = sum
			}
		}
	}
	for r, sum := range table {
		for j := range sum {
			sum[j] /= float32(size)
		}
		table[r] = sum
	}
	return table
}

// tableAndLayer are an embedding table between two dense parameters.
func tableAndLayer() []*Param {
	ps := testParams(0, 4, tableRows*rowLength, 5)
	ps[1].Row = rowLength
	return ps
}

func checkRows(d *DDP, size, step, passes int, scale float32) error {
	rows, values := d.Rows(1)
	want := denseMean(size, step, passes)
	if !slices.Equal(rows, slices.Sorted(maps.Keys(want))) {
		return fmt.Errorf("step %d: rows are %v, want %v", step, rows, slices.Sorted(maps.Keys(want)))
	}
	for k, r := range rows {
		for j, w := range want[r] {
			if got := values[k*rowLength+j]; got != w*scale {
				return fmt.Errorf("step %d: row %d is %v, want %v times %v", step, r, values[k*rowLength:][:rowLength],
					want[r], scale)
			}
		}
	}
	return nil
}

func TestRowsOfAllRanksBecomeTheAverage(t *testing.T) {
	for _, opts := range []Options{{}, {Accumulate: 2}, {FirstBucketBytes: 4, BucketBytes: 4, NoOverlap: true},
		{Hook: meanHook{}}, {Quantum: 0.25}} {
		for _, size := range []int{1, 2, 4} {
			commtest.Run(t, size, func(ctx context.Context, c *comm.Comm) error {
				params := tableAndLayer()
				if c.Rank() > 0 {
					params[1].Data[7] = -1 // New makes it rank 0's
				}
				d, err := New(ctx, c, params, opts)
				if err != nil {
					return err
				}
				if params[1].Grad != nil || params[1].Data[7] != tableAndLayer()[1].Data[7] {
					return fmt.Errorf("gradient %v, table %v", params[1].Grad, params[1].Data)
				}
				scale := float32(1)
				if opts.Quantum != 0 {
					scale = float32(size) // the sum
				}
				for s := range 4 {
					passes := max(1, opts.Accumulate)
					d.ZeroGrad()
					for pass := range passes {
						params[2].Grad[0] += float32(c.Rank())
						d.Ready(2)
						rows, values := batchRows(c.Rank(), s, pass)
						d.ReadyRows(1, rows, values)
						clear(values) // they were copied
						d.Ready(0)
					}
					if err := d.Finish(ctx); err != nil {
						return err
					}
					if err := checkRows(d, size, s, passes, scale); err != nil {
						return err
					}
					if want := float32(passes) * float32(size-1) / 2 * scale; params[2].Grad[0] != want {
						return fmt.Errorf("dense gradient is %v, want %v", params[2].Grad[0], want)
					}
				}
				return d.Close(ctx)
			})
		}
	}
}

// Only the rows' own bytes count.
func TestSparseGradientsCountTheirRowsAlone(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 1000*4)
		params[0].Row = 4
		d, err := New(ctx, c, params, Options{})
		if err != nil {
			return err
		}
		d.ReadyRows(0, []int32{9, int32(c.Rank()), 9}, make([]float32, 12)) // rows 0, 1 and 9
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if got := d.Stats().Bytes; got != 3*(4+4*4) {
			return fmt.Errorf("%d bytes, want those of 3 rows", got)
		}
		return d.Close(ctx)
	})
}

func TestRowsAreClippedAndSkipped(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		params := testParams(0, 10, 2)
		params[0].Row = 2
		d, err := New(ctx, c, params, Options{FindUnused: true})
		if err != nil {
			return err
		}
		if c.Rank() == 0 { // and rank 1 announces nothing
			d.ReadyRows(0, []int32{4}, []float32{6, 0})
			params[1].Grad[1] = 8
			d.Ready(1)
		}
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if norm, err := d.ClipGradNorm(ctx, 0.5); err != nil || norm != 5 {
			return fmt.Errorf("norm is %v (%v), want 5", norm, err)
		}
		rows, values := d.Rows(0)
		if !slices.Equal(rows, []int32{4}) || !slices.Equal(values, []float32{0.3, 0}) || params[1].Grad[1] != 0.4 ||
			!d.Used(0) {
			return fmt.Errorf("rows %v, %v, dense %v", rows, values, params[1].Grad)
		}
		if err := d.Finish(ctx); err != nil {
			return err
		}
		if rows, _ := d.Rows(0); len(rows) != 0 || d.Used(0) {
			return fmt.Errorf("without a gradient there are rows %v", rows)
		}
		if rows, values := d.Rows(1); rows != nil || values != nil {
			return fmt.Errorf("a parameter without rows has %v", rows)
		}
		return d.Close(ctx)
	})
}

func TestMistakesWithRowsAreNamed(t *testing.T) {
	for want, announce := range map[string]func(d *DDP){
		`ReadyRows(0): row 5 of "p0": want 0 to 4`: func(d *DDP) {
			d.ReadyRows(0, []int32{1, 5}, make([]float32, 4))
		},
		`ReadyRows(0): row -1 of "p0"`: func(d *DDP) {
			d.ReadyRows(0, []int32{-1}, make([]float32, 2))
		},
		`ReadyRows(0): 1 rows of "p0" with 3 numbers: want 2 for each`: func(d *DDP) {
			d.ReadyRows(0, []int32{1}, make([]float32, 3))
		},
		`Ready(0): "p0" has rows: want ReadyRows`:    func(d *DDP) { d.Ready(0) },
		`ReadyRows(1): "p1" has no rows: want Ready`: func(d *DDP) { d.ReadyRows(1, nil, nil) },
		`more than 1 times in one step for "p0"`: func(d *DDP) {
			d.ReadyRows(0, nil, nil)
			d.ReadyRows(0, nil, nil)
		},
		`want 0 to 1`: func(d *DDP) { d.ReadyRows(2, nil, nil) },
	} {
		commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
			params := testParams(0, 10, 2)
			params[0].Row = 2
			d, err := New(ctx, c, params, Options{})
			if err != nil {
				return err
			}
			announce(d)
			return errors.Join(wantError(d.Finish(ctx), want), d.Close(ctx))
		})
	}
}
