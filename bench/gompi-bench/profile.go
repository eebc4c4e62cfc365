package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"gompi/bench/internal/result"
	"gompi/bench/internal/runner"
	"gompi/internal/cli"
	"gompi/internal/env"
	"gompi/internal/machine"
)

// This file measures a machine's profile: the fastest ring shape, the profit of non-temporal
// stores, and the message lengths for which the receiver should read the sender's memory. The jobs
// of all ways take turns, since other load on the machine changes.

const (
	profileRounds = 3
	// margin bounds the ratio of times at which a faster method replaces another.
	margin = 0.95
)

// profileSizes are lengths beyond the eager limit, where reads are possible. shapeSizes distinguish
// ring shapes.
var (
	profileSizes = []int{128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20}
	shapeSizes   = []int{128 << 10, 512 << 10, 4 << 20}
)

// A way is a method for messages, defined by the settings of its jobs.
type way struct {
	name     string
	settings machine.Settings
	heap     bool // in memory from comm.Alloc
}

// usual is the method that is kept unless another wins by the margin.
var usual = way{name: "32K in 2M", settings: machine.Settings{
	machine.ReadFrom: machine.Never, machine.RingChunk: 32 << 10, machine.RingBytes: 2 << 20,
	machine.NonTemporal: 8 << 10,
	machine.String:      machine.Never,
}}

// with returns w with a setting changed.
func (w way) with(name string, k machine.Setting, n int64) way {
	w.name, w.settings[k] = name, n
	return w
}

// ringShapes returns the methods through rings. The usual method is first. The last numStores
// methods differ from it in the kind of stores, the others in the ring's shape: they have 8 or 16
// chunks, or the whole ring, in flight.
func ringShapes() []way {
	all := []way{usual}
	for _, chunk := range []int64{16 << 10, 32 << 10, 64 << 10} {
		for _, bytes := range []int64{8 * chunk, 16 * chunk, 2 << 20} {
			name := formatSize(int(chunk)) + " in " + formatSize(int(bytes))
			if name != usual.name {
				all = append(all, usual.with(name, machine.RingChunk, chunk).with(name, machine.RingBytes, bytes))
			}
		}
	}
	plain := usual.with("plain stores", machine.NonTemporal, machine.Never)
	return append(all, plain, plain.with("string copies", machine.String, 2<<10))
}

// numStores is the number of ringShapes that differ in the kind of stores.
const numStores = 2

const profileUsage = `usage: gompi-bench profile

Measures, without gompirun, what this machine's processors are good at, prints it and
keeps it in a file of the user's cache, which jobs on this machine read.

`

func profileMain(args []string, stdout, stderr io.Writer) int {
	set := cli.New("gompi-bench profile")
	rest, err := set.Parse(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("argument %q: want none", rest[0])
	}
	switch {
	case set.Answer(err, profileUsage+set.FlagUsages(), stdout):
		return 0
	case err != nil:
		return fail(stderr, "profile", 2, err)
	}
	if err := profile(stdout); err != nil {
		return fail(stderr, "profile", 1, err)
	}
	return 0
}

// profile measures, stores and prints the profile of this machine.
func profile(stdout io.Writer) error {
	if env.String(env.BootFD) != "" {
		return errors.New("it starts jobs itself: want gompi-bench profile, without gompirun")
	}
	if err := machine.CheckKeep(); err != nil {
		return err
	}
	var measured strings.Builder
	settings, err := measureProfile(&measured)
	if err != nil {
		return err
	}
	file, err := machine.Keep(settings, measured.String())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s%s: %s, kept in %s\n", &measured, machine.Processor(), settings, file)
	return err
}

// measureProfile measures a profile, and writes tables of the times.
func measureProfile(w io.Writer) (machine.Settings, error) {
	fmt.Fprintf(w, "a line from one processor to the other: %v\n", runner.ProbeFlag())
	ways := ringShapes()
	times, err := timeInTurn(ways, shapeSizes)
	if err != nil {
		return machine.Settings{}, err
	}
	writeTimes(w, ways, shapeSizes, times)
	best := chooseShape(ways, times)
	read := best.with("read", machine.ReadFrom, 1)
	heap := best
	heap.name, heap.heap = "heap", true
	best.name = "ring"
	ways = []way{best, read, heap}
	if times, err = timeInTurn(ways, profileSizes); err != nil {
		return machine.Settings{}, err
	}
	writeTimes(w, ways, profileSizes, times)
	settings := best.settings
	settings[machine.ReadFrom], settings[machine.ReadBelow] = chooseReads(medians(times[0]), medians(times[1]))
	return settings, nil
}

// rounds are times of messages in microseconds, by round and size.
type rounds [profileRounds][]float64

// timeInTurn times messages of some sizes along each way, in turns.
func timeInTurn(ways []way, sizes []int) ([]rounds, error) {
	times := make([]rounds, len(ways))
	for i := range profileRounds {
		for k, w := range ways {
			var err error
			if times[k][i], err = w.messages(sizes); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// messages starts two ranks that time messages along w.
func (w way) messages(sizes []int) ([]float64, error) {
	list := sizeList(sizes)
	cmd := runner.Command{
		Args: []string{beside("gompirun"), "-q", "-np", "2", self(), "run", "-format", "csv", "-check=false",
			"-budget", "5ms",
			fmt.Sprintf("-alloc=%v", w.heap), "-sizes", list.String(), "latency"},
		Env: []string{env.Profile + "=" + machine.None, env.Tune + "=" + w.settings.String(), env.Transport + "=",
			env.Eager + "=", env.Log + "="},
	}
	out, err := cmd.Run(context.Background(), time.Minute)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd, err)
	}
	rows, err := result.ReadCSV(out.Stdout)
	if err == nil && len(rows) != len(sizes) {
		err = fmt.Errorf("%d rows, want %d", len(rows), len(sizes))
	}
	var times []float64
	for _, r := range rows {
		times = append(times, r.Median)
	}
	return times, err
}

// writeTimes writes the medians, by size and method, and each method's mean time relative to the
// first method's.
func writeTimes(w io.Writer, ways []way, sizes []int, times []rounds) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "us\t")
	for _, n := range sizes {
		fmt.Fprintf(table, "%s\t", formatSize(n))
	}
	fmt.Fprintf(table, "of %s\t\n", ways[0].name)
	for k, w := range ways {
		fmt.Fprintf(table, "%s\t", w.name)
		for _, t := range medians(times[k]) {
			fmt.Fprintf(table, "%.1f\t", t)
		}
		fmt.Fprintf(table, "%.2f\t\n", share(medians(times[k]), medians(times[0])))
	}
	table.Flush()
}

// medians returns the medians over the rounds, by size.
func medians(r rounds) []float64 {
	var all []float64
	for i := range r[0] {
		var one []float64
		for _, times := range r {
			one = append(one, times[i])
		}
		all = append(all, result.Median(one))
	}
	return all
}

// share returns the geometric mean of the ratios times/of.
func share(times, of []float64) float64 {
	var shares []float64
	for i := range times {
		shares = append(shares, times[i]/of[i])
	}
	return result.GeoMean(shares)
}

// worst returns the largest share of any round.
func worst(times, of rounds) float64 {
	most := 0.0
	for i := range times {
		most = max(most, share(times[i], of[i]))
	}
	return most
}

// chooseShape returns the best shape of the ring. A winner must be the fastest in every round:
// among so many shapes, noise makes some the fastest in a single round. The kind of stores is
// chosen separately.
func chooseShape(ways []way, times []rounds) way {
	shapes := len(ways) - numStores
	best, stores := ways[winner(times[:shapes])], ways[0]
	if k := winner(append(times[:1:1], times[shapes:]...)); k > 0 {
		stores = ways[shapes+k-1]
	}
	for _, k := range []machine.Setting{machine.NonTemporal, machine.String} {
		best.settings[k] = stores.settings[k]
	}
	return best
}

// winner returns the index of the least times, or 0 if none wins by the margin.
func winner(times []rounds) int {
	best, least := 0, margin
	for k := range times {
		if t := worst(times[k], times[0]); t < least {
			best, least = k, t
		}
	}
	return best
}

// chooseReads returns the longest range of profileSizes in which reads win, as its first size and
// the size after its last. A range of fewer than two sizes may be noise and does not count.
func chooseReads(ring, read []float64) (from, below int64) {
	best, at := 0, 0
	for i := range ring {
		n := 0
		for i+n < len(ring) && read[i+n] < margin*ring[i+n] {
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	if best < 2 {
		return machine.Never, 0
	}
	if from = int64(profileSizes[at]); at == 0 {
		from = 1 // all messages beyond the eager limit
	}
	if at+best < len(ring) {
		below = int64(profileSizes[at+best])
	}
	return from, below
}
