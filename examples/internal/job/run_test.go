package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/internal/version"
)

// The error of rank 0, which all get, is named once, and so is a rank's own.
func TestErrorsNameOneRank(t *testing.T) {
	commtest.Run(t, 2, func(ctx context.Context, c *comm.Comm) error {
		lost := errors.New("open data: no such file")
		shared := ddp.OnRankZero(ctx, c, func() error { return lost })
		if got, want := named(c, shared), "rank 0: open data: no such file"; got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		if got, want := named(c, lost), fmt.Sprintf("rank %d: %v", c.Rank(), lost); got != want {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

func TestVersionIsPrintedWithoutAJob(t *testing.T) {
	var stdout, stderr strings.Builder
	parse := func() error {
		f := Flags{}
		return f.Parse("prog", "", []string{"-version"}, io.Discard, nil)
	}
	status := Run("prog", &stdout, &stderr, parse, nil)
	if got := stdout.String(); status != 0 || !strings.HasPrefix(got, "prog "+version.Number+", commit ") ||
		stderr.Len() > 0 {
		t.Errorf("status %d, stdout %q, stderr %q; want one line with the version", status, got, &stderr)
	}
}
