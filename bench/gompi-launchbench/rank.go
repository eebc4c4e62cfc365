package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"gompi/comm"
)

// asRank is the argument that makes this program a rank of a job that does what
// hello does and tells its peak memory, which hello does not.
const asRank = "rank"

func rank(stdout, stderr io.Writer) int {
	if err := meet(context.Background(), stdout); err != nil {
		fmt.Fprintf(stderr, "gompi-launchbench: %v\n", err)
		return 1
	}
	return 0
}

func meet(ctx context.Context, stdout io.Writer) error {
	c, err := comm.Init(ctx)
	if err != nil {
		return err
	}
	if err := c.Barrier(ctx); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "rank %d of %d: %s%d\n", c.Rank(), c.Size(), peakMark, highWater(string(status)))
	return c.Close(ctx)
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

// peakMark precedes a rank's peak memory in kilobytes in what ranks print.
const peakMark = "peak_kb="

// peaks returns the largest peak memory that ranks have printed, 0 if none has.
func peaks(printed string) int {
	most := 0
	for _, part := range strings.Split(printed, peakMark)[1:] {
		digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
		if kb, err := strconv.Atoi(digits); err == nil {
			most = max(most, kb)
		}
	}
	return most
}
