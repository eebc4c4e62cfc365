package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"gompi/comm"
)

// rankCommand is the command of launch's ranks. As mpihello and torchhello do for other libraries,
// a rank prints a line, joins, meets the others, prints the time inside Init and its peak memory,
// and leaves.
const rankCommand = "rank"

// Marks before the figures that ranks print.
const (
	initMark   = "init_ms="
	importMark = "import_ms="
	peakMark   = "peak_kb=" // 1024 bytes
)

// rankMain is one rank.
func rankMain(_ []string, stdout, stderr io.Writer) int {
	fmt.Fprintln(stdout, "here")
	if err := meet(context.Background(), stdout); err != nil {
		return fail(stderr, rankCommand, 1, err)
	}
	return 0
}

func meet(ctx context.Context, stdout io.Writer) error {
	begun := time.Now()
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "rank %d of %d: "+initMark+"%.1f "+peakMark+"%.0f\n", c.Rank(), c.Size(), took.Seconds()*1e3,
		largest(string(status), "VmHWM:"))
	return c.Close(ctx)
}

// largest returns the largest number that follows mark in a text, or 0.
func largest(text, mark string) float64 {
	most := 0.0
	for _, part := range strings.Split(text, mark)[1:] {
		part = strings.TrimLeft(part, " \t")
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789."))]
		if n, err := strconv.ParseFloat(digits, 64); err == nil {
			most = max(most, n)
		}
	}
	return most
}
