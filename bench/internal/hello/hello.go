// Package hello is the rank that says so, joins, meets, prints a line with the
// time inside Init and its peak memory, and leaves: what mpihello and torchhello
// are for other libraries. Benchmarks run themselves as such ranks.
package hello

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

// AsRank is the argument that makes a benchmark be a rank.
const AsRank = "rank"

// ExitIfRank runs this process as a rank and exits, if its first argument says so.
func ExitIfRank() {
	if len(os.Args) >= 2 && os.Args[1] == AsRank {
		os.Exit(Rank(os.Args[2:], os.Stdout, os.Stderr))
	}
}

// Rank runs one rank and returns its exit status. If its argument names a file that does not exist,
// it then waits to be killed. If the file exists, this is the restarted rank.
func Rank(args []string, stdout, stderr io.Writer) int {
	fmt.Fprintln(stdout, "here")
	marker := ""
	if len(args) > 0 {
		marker = args[0]
	}
	if err := meet(context.Background(), marker, stdout); err != nil {
		fmt.Fprintf(stderr, "rank: %v\n", err)
		return 1
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
	fmt.Fprintf(stdout, "rank %d of %d: "+InitMark+"%.1f "+PeakMark+"%d\n", c.Rank(), c.Size(), took.Seconds()*1e3, highWater(string(status)))
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
	fmt.Fprintf(stdout, "%s%d %d\n", ReadyMark, c.Rank(), os.Getpid())
	if err == nil {
		return nil
	}
	if c.Rank() == c.Size()-1 {
		time.Sleep(10 * time.Minute)
	}
	return c.Barrier(ctx)
}

// highWater returns the peak resident memory, in kilobytes, from the text of
// /proc/PID/status; 0 if it does not tell.
func highWater(status string) int {
	_, rest, _ := strings.Cut(status, "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(fields[0])
	return kb
}

// What stands before the figures that ranks print.
const (
	InitMark   = "init_ms="
	ImportMark = "import_ms="
	PeakMark   = "peak_kb=" // 1024 bytes
	ReadyMark  = "ready "   // number and process of a rank that can be killed
)

// Largest returns the largest number that follows mark in what ranks printed, 0
// if there is none.
func Largest(printed, mark string) float64 {
	most := 0.0
	for _, part := range strings.Split(printed, mark)[1:] {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789."))]
		if n, err := strconv.ParseFloat(digits, 64); err == nil {
			most = max(most, n)
		}
	}
	return most
}
