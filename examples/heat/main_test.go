package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/topology"
)

// In so many steps heat comes from each point of a plate to each other.
var small = flags{rows: 24, cols: 18, steps: 50, check: true}

func TestAnyRanksComputeThePlateOfOne(t *testing.T) {
	for _, plate := range []flags{small, {rows: 6, cols: 2, steps: 9, check: true}} {
		var first []byte
		for _, n := range []int{1, 2, 4, 6} {
			plate.png = filepath.Join(t.TempDir(), "plate.png")
			var output bytes.Buffer
			commtest.Run(t, n, func(ctx context.Context, c *comm.Comm) error {
				out := io.Writer(io.Discard)
				if c.Rank() == 0 {
					out = &output
				}
				return heat(ctx, c, &plate, out)
			})
			if !strings.Contains(output.String(), "equal to a run by one rank") {
				t.Errorf("%d ranks: %s", n, output.String())
			}
			picture, err := os.ReadFile(plate.png)
			if err != nil {
				t.Fatal(err)
			}
			if n == 1 {
				first = picture
				wantPicture(t, picture, &plate)
			}
			if !bytes.Equal(picture, first) {
				t.Errorf("%d ranks draw another picture than one", n)
			}
		}
	}
}

// wantPicture checks that there is a point for each of the plate, and that it is hot above and not
// below.
func wantPicture(t *testing.T, file []byte, f *flags) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != f.cols || size.Y != f.rows {
		t.Errorf("the picture is %v, want %d x %d", size, f.cols, f.rows)
	}
	above, _, _, _ := picture.At(f.cols/2, 0).RGBA()
	below, _, _, _ := picture.At(f.cols/2, f.rows-1).RGBA()
	if above <= below {
		t.Errorf("the picture has %d for red above, and %d below", above, below)
	}
}

// Rank 0 finds a difference if blocks exchange halos on another grid than theirs.
func TestAWrongHaloIsFound(t *testing.T) {
	for name, other := range map[string]func(ctx context.Context, g *topology.Cart) (*topology.Cart, error){
		"with nobody": func(ctx context.Context, g *topology.Cart) (*topology.Cart, error) {
			return single(ctx, g, false)
		},
		"each with itself": func(ctx context.Context, g *topology.Cart) (*topology.Cart, error) {
			return single(ctx, g, true)
		},
		"from below to above": func(ctx context.Context, g *topology.Cart) (*topology.Cart, error) {
			return topology.NewCart(ctx, g.Comm, g.Dims(), []bool{true, false})
		},
		"from right to left": func(ctx context.Context, g *topology.Cart) (*topology.Cart, error) {
			return topology.NewCart(ctx, g.Comm, g.Dims(), []bool{false, true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			commtest.Run(t, 4, func(ctx context.Context, c *comm.Comm) error {
				g, err := gridOf(ctx, c, &small)
				if err != nil {
					return err
				}
				wrong, err := other(ctx, g)
				if err != nil {
					return err
				}
				plate, err := stepped(ctx, g, wrong)
				if err == nil && c.Rank() == 0 && finish(plate, &small, io.Discard) == nil {
					err = errors.New("rank 0 finds no difference")
				}
				return errors.Join(err, wrong.Close(ctx), g.Close(ctx))
			})
		})
	}
}

// single returns a grid of this rank alone.
func single(ctx context.Context, g *topology.Cart, periodic bool) (*topology.Cart, error) {
	self, err := g.Split(ctx, g.Rank(), 0)
	if err != nil {
		return nil, err
	}
	alone, err := topology.NewCart(ctx, self, []int{1, 1}, []bool{periodic, periodic})
	return alone, errors.Join(err, self.Close(ctx))
}

// stepped computes the plate on g with halos of another grid.
func stepped(ctx context.Context, g, halos *topology.Cart) ([]float64, error) {
	b := blockOf(g.Coords(g.Rank()), g.Dims(), &small)
	if err := b.connect(halos); err != nil {
		return nil, err
	}
	for range small.steps {
		if err := b.step(ctx); err != nil {
			return nil, err
		}
	}
	return gather(ctx, g, b, &small)
}

func TestPlatesThatCannotBe(t *testing.T) {
	for _, args := range [][]string{{"-rows", "0"}, {"-steps", "-1"}, {"-colour"}, {"plate"}} {
		var errs strings.Builder
		if status := run(args, io.Discard, &errs); status != 2 || !strings.HasPrefix(errs.String(), "heat: ") {
			t.Errorf("%q: status %d, want 2: %s", args, status, errs.String())
		}
	}
	for rank, err := range commtest.Ranks(t.Context(), 3, comm.Config{}, func(ctx context.Context, c *comm.Comm) error {
		return heat(ctx, c, &flags{rows: 2, cols: 9, steps: 1}, io.Discard)
	}) {
		if want := "-rows 2 -cols 9 on 3 x 1 ranks: want at least a point for each"; fmt.Sprint(err) != want {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}
