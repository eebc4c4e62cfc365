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

// rankCommand is the command of the ranks that launch starts: they say so, join, meet, print a line
// with the time inside Init and their peak memory, and leave, as mpihello and torchhello do for
// other libraries.
const rankCommand = "rank"

// What stands before the figures that ranks print.
const (
	initMark   = "init_ms="
	importMark = "import_ms="
	peakMark   = "peak_kb=" // 1024 bytes
	readyMark  = "ready "   // number and process of a rank that can be killed
)

// rankMain is one rank. If its argument names a file that does not exist, it then waits to be
// killed. If the file exists, this is the restarted rank.
func rankMain(args []string, stdout, stderr io.Writer) int {
	fmt.Fprintln(stdout, "here")
	marker := strings.Join(args, " ")
	if err := meet(context.Background(), marker, stdout); err != nil {
		return fail(stderr, rankCommand, 1, err)
	}
	return 0
}

func meet(ctx context.Context, marker string, stdout io.Writer) error {
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
	fmt.Fprintf(stdout, "rank %d of %d: "+initMark+"%.1f "+peakMark+"%.0f\n", c.Rank(), c.Size(), took.Seconds()*1e3, largest(string(status), "VmHWM:"))
	if marker != "" {
		if err := waitToBeKilled(ctx, c, marker, stdout); err != nil {
			return err
		}
	}
	return c.Close(ctx)
}

// waitToBeKilled waits for the last rank, which never comes, unless marker says
// that this is the second time.
func waitToBeKilled(ctx context.Context, c *comm.Comm, marker string, stdout io.Writer) error {
	_, err := os.Stat(marker)
	fmt.Fprintf(stdout, "%s%d %d\n", readyMark, c.Rank(), os.Getpid())
	if err == nil {
		return nil
	}
	if c.Rank() == c.Size()-1 {
		time.Sleep(10 * time.Minute)
	}
	return c.Barrier(ctx)
}

// largest returns the largest number that follows mark in a text, 0 if there is none.
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
