package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"gompi/bench/internal/contest"
	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/internal/machine"
)

// This file measures what a machine's profile says: how long messages are between two ranks for
// which it is faster that the receiver reads them where they lie. Jobs of either kind take turns,
// since what the machine does besides changes.

const (
	profileRounds = 3
	// margin is what reading has to take at most, of the other way's time, to be chosen.
	margin = 0.95
)

// profileSizes are longer than what is eager, and so never read.
var profileSizes = []int{128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20}

// A timing is the time of a message, in microseconds, either way.
type timing struct {
	size       int
	ring, read float64
}

// profile measures, keeps and prints the profile of this machine.
func profile(stdout io.Writer) error {
	if env.String(env.BootFD) != "" {
		return errors.New("-profile starts jobs itself: want gompi-bench -profile, without gompirun")
	}
	timings, err := compareWays()
	if err != nil {
		return err
	}
	reads := choose(timings)
	file, err := machine.Keep(reads)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "message\tring us\tread us\tring/read\t\n")
	for _, t := range timings {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t\n", cli.FormatSize(t.size), t.ring, t.read, t.ring/t.read)
	}
	w.Flush()
	_, err = fmt.Fprintf(stdout, "%s: %s, kept in %s\n", machine.Processor(), reads, file)
	return err
}

// compareWays times messages either way, and returns medians of the rounds.
func compareWays() ([]timing, error) {
	var ring, read [profileRounds][]float64
	for i := range profileRounds {
		var err error
		if ring[i], err = messages("shm.read=1024g"); err != nil {
			return nil, err
		}
		if read[i], err = messages("shm.read=1"); err != nil {
			return nil, err
		}
	}
	timings := make([]timing, len(profileSizes))
	for i, size := range profileSizes {
		timings[i] = timing{size, middle(ring, i), middle(read, i)}
	}
	return timings, nil
}

// middle returns the median over the rounds of the i-th size.
func middle(rounds [profileRounds][]float64, i int) float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, r[i])
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// messages starts two ranks that time messages of profileSizes under a setting.
func messages(setting string) ([]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var sizes []string
	for _, n := range profileSizes {
		sizes = append(sizes, strconv.Itoa(n))
	}
	cmd := exec.Command(contest.Beside("gompirun"), "-q", "-np", "2", self, "-format", "csv", "-check=false", "-budget", "15ms", "-sizes", strings.Join(sizes, ","), "latency")
	cmd.Env = append(os.Environ(), env.Profile+"="+machine.None, env.Tune+"="+setting, env.Transport+"=", env.Eager+"=", env.Log+"=")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%q: %w: %s", cmd.Args, err, &said)
	}
	return medians(out)
}

// medians reads the times from what gompi-bench has written.
func medians(out []byte) ([]float64, error) {
	lines, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(lines) != 1+len(profileSizes) {
		return nil, fmt.Errorf("%d lines, want %d: %q (%v)", len(lines), 1+len(profileSizes), out, err)
	}
	column := slices.Index(lines[0], "usec_median")
	if column < 0 {
		return nil, fmt.Errorf("no column usec_median in %q", lines[0])
	}
	var times []float64
	for _, line := range lines[1:] {
		t, err := strconv.ParseFloat(line[column], 64)
		if err != nil || t <= 0 {
			return nil, fmt.Errorf("a time of %q", line[column])
		}
		times = append(times, t)
	}
	return times, nil
}

// choose returns what the timings ask for: the longest range of sizes in which reading wins, if
// there are at least two, which noise does not make.
func choose(timings []timing) (r machine.Range) {
	best, at := 0, 0
	for i := range timings {
		n := 0
		for i+n < len(timings) && timings[i+n].read < margin*timings[i+n].ring {
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	if best < 2 {
		return r
	}
	if r.From = int64(timings[at].size); at == 0 {
		r.From = 1 // all that is not eager
	}
	if at+best < len(timings) {
		r.Below = int64(timings[at+best].size)
	}
	return r
}
