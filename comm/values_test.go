package comm_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
)

type sample struct {
	Name   string
	Points []float64
	Of     map[string]int
}

func TestValuesOfAnyTypeAndLengthArrive(t *testing.T) {
	want := sample{"first", make([]float64, 300_000), map[string]int{"a": 1, "b": 2}} // longer than the eager limit
	want.Points[299_999] = 1.5
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			if err := comm.SendValue(ctx, c, 1, 7, want); err != nil {
				return err
			}
			return comm.SendValue(ctx, c, 1, 8, "no more")
		}
		got, st, err := comm.RecvValue[sample](ctx, c, comm.AnySource, 7)
		if err != nil {
			return err
		}
		if got.Name != want.Name || !slices.Equal(got.Points, want.Points) || !maps.Equal(got.Of, want.Of) || st.Source != 0 || st.Tag != 7 {
			return fmt.Errorf("got %q with %d points, status %+v", got.Name, len(got.Points), st)
		}
		word, _, err := comm.RecvValue[string](ctx, c, 0, comm.AnyTag)
		if err == nil && word != "no more" {
			err = fmt.Errorf("got %q", word)
		}
		return err
	})
}

func TestMessagesThatAreNoSuchValueAreErrors(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		if c.Rank() == 0 {
			err := comm.SendValue(ctx, c, 1, 0, func() {})
			if err == nil || !strings.Contains(err.Error(), "send to rank 1, tag 0: value of type func(): ") {
				return fmt.Errorf("a func is sent: %v", err)
			}
			err = comm.SendValue(ctx, c, 1, 0, (*sample)(nil))
			if err == nil || !strings.Contains(err.Error(), "value of type *comm_test.sample: a nil pointer") {
				return fmt.Errorf("a nil pointer is sent: %v", err)
			}
			if err := comm.SendValue(ctx, c, 1, 3, "three"); err != nil {
				return err
			}
			return comm.Send(ctx, c, 1, 4, []byte{1, 2, 3})
		}
		for _, want := range []string{"bytes from rank 0, tag 3: no value of type int: ",
			"message of 3 bytes from rank 0, tag 4: no value of type int: "} {
			if _, _, err := comm.RecvValue[int](ctx, c, 0, comm.AnyTag); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("error %v, want %q", err, want)
			}
		}
		_, st, err := comm.RecvValue[int](ctx, c, comm.ProcNull, 0)
		if err != nil || st.Source != comm.ProcNull {
			return fmt.Errorf("from ProcNull: status %+v, %v", st, err)
		}
		return nil
	})
}
