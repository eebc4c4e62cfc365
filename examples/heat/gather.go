package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"

	"gompi/comm"
	"gompi/comm/topology"
)

// gather returns the points of the plate, row after row, on rank 0.
func gather(ctx context.Context, grid *topology.Cart, b *block, f *flags) ([]float64, error) {
	blocks, counts := make([]*block, grid.Size()), make([]int, grid.Size())
	for r := range blocks {
		blocks[r] = blockOf(grid.Coords(r), grid.Dims(), f)
		counts[r] = blocks[r].rows * blocks[r].cols
	}
	all := make([]float64, f.rows*f.cols)
	if err := comm.Gatherv(ctx, grid.Comm, 0, b.points(), all, counts, nil); err != nil || grid.Rank() != 0 {
		return nil, err
	}
	plate := make([]float64, len(all))
	for _, b := range blocks {
		for r := range b.rows {
			copy(plate[(b.top+r)*f.cols+b.left:], all[:b.cols])
			all = all[b.cols:]
		}
	}
	return plate, nil
}

// points returns the points of b without the frame.
func (b *block) points() (all []float64) {
	for r := range b.rows {
		all = append(all, b.row(r+1)...)
	}
	return all
}

// alone returns the plate as one rank computes it, without a message.
func alone(f *flags) []float64 {
	b := newBlock(0, 0, f.rows, f.cols, f)
	for range f.steps {
		b.relax(1, b.rows+1, 1, b.cols+1)
		b.swap()
	}
	return b.points()
}

// compare returns an error unless both plates are equal to the last bit.
func compare(got, want []float64, f *flags) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("row %d, column %d of the plate is %v, want %v", i/f.cols, i%f.cols, got[i], want[i])
		}
	}
	return nil
}

// draw writes a picture of the plate: from black over red and yellow to white.
func draw(plate []float64, f *flags) error {
	picture := image.NewRGBA(image.Rect(0, 0, f.cols, f.rows))
	for i, x := range plate {
		picture.Set(i%f.cols, i/f.cols, color.RGBA{R: shade(3 * x), G: shade(3*x - 1), B: shade(3*x - 2), A: 255})
	}
	file, err := os.Create(f.png)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(file, picture), file.Close())
}

// shade returns x, cut to 0 to 1, as part of a color.
func shade(x float64) uint8 { return uint8(255 * min(max(x, 0), 1)) }
