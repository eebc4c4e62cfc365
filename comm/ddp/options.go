package ddp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gompi/comm"
)

// Options are the settings of New. The zero value is right for most jobs. All ranks must pass the
// same. The options from FindUnused on are for parameters in host memory.
type Options struct {
	// FirstBucketBytes is the largest size of the first bucket; 0 means 1 MiB. It is small so that
	// communication begins early.
	FirstBucketBytes int
	// BucketBytes is the largest size of each other bucket; 0 means 25 MiB.
	BucketBytes int
	// Accumulate is the number of backward passes whose gradients add up before they are averaged
	// over ranks; 0 means 1.
	Accumulate int
	// BucketOrder, if not nil, is the result of DDP.BucketOrder in the job that this one continues.
	// With the same sizes, the first step then has the buckets of that job's last step, and keeps
	// them unless TuneBuckets is set. An order of another number of parameters is another model's,
	// and is not used.
	BucketOrder []int
	// NoOverlap makes Finish do all communication, for comparison.
	NoOverlap bool

	// FindUnused lets backward leave parameters out: Finish calls Skip for parameters that were not
	// announced, and Used reports whether one had a gradient on any rank. FindUnused costs an
	// allreduce of a byte for each parameter in each step that averages gradients.
	FindUnused bool
	// TuneBuckets tries several BucketBytes after the first step, in 5 steps each, and keeps the
	// size of the fastest steps, which Stats reports. These sizes replace BucketBytes and
	// FirstBucketBytes.
	TuneBuckets bool
	// Hook, if not nil, averages gradients in place of an allreduce. Each rank makes its own.
	// Package compress has some. float32 only.
	Hook Hook
	// Quantum, if not 0, makes sums exact, so that they depend neither on the number of ranks nor
	// on the assignment of samples. The gradient of each backward pass is rounded to a multiple of
	// Quantum, a power of two, and Finish leaves the sum over all passes and ranks, not the
	// average. To make the same steps on any number of ranks, bit by bit, a job also needs passes
	// that compute the same on any rank: of as many samples each, scaled by 1/(samples of the whole
	// batch). See sampler.Sampler.Micro. 0x1p-44 suits most models. A sum costs twice the bytes of
	// an average. float32 only.
	Quantum float64
	// Shard leaves on each rank the averages of a part of the gradients only. The rank's optimiser
	// keeps memory for this part alone (ZeRO, stage 1): see Shards and GatherParams. The order of
	// the first step does not change the buckets.
	Shard bool
	// LocalSteps, if not 0, averages the parameters after every LocalSteps steps, and no gradients
	// (local SGD): see AverageDue and AverageParams. The first LocalAfter steps since New average
	// gradients all the same (post-local SGD).
	LocalSteps, LocalAfter int
	// Buffers are a model's state beside parameters, such as the statistics of batch normalisation,
	// of any types. New and SyncBuffers copy rank 0's to all ranks.
	Buffers []Slice
	// Trace keeps the times of the last 1000 steps, for WriteTrace. A goroutine waits for each
	// bucket to record its end, which slows steps down if processors are scarce.
	Trace bool
}

func (o Options) withDefaults() Options {
	o.FirstBucketBytes = cmp.Or(o.FirstBucketBytes, 1<<20)
	o.BucketBytes = cmp.Or(o.BucketBytes, 25<<20)
	o.Accumulate = cmp.Or(o.Accumulate, 1)
	return o
}

// check returns an error unless the options are valid.
func (o Options) check() error {
	for _, n := range []struct {
		name string
		n    int
	}{
		{"FirstBucketBytes", o.FirstBucketBytes}, {"BucketBytes", o.BucketBytes}, {"Accumulate", o.Accumulate},
		{"LocalSteps", o.LocalSteps}, {"LocalAfter", o.LocalAfter},
	} {
		if n.n < 0 {
			return fmt.Errorf("ddp: %s is %d: want no negative number", n.name, n.n)
		}
	}
	if f, _ := math.Frexp(o.Quantum); o.Quantum != 0 && f != 0.5 {
		return fmt.Errorf("ddp: Quantum is %g: want a power of two", o.Quantum)
	}
	if names := o.names(reducers); len(names) > 1 {
		return fmt.Errorf("ddp: %s are set: want one of them", strings.Join(names, " and "))
	}
	if o.Shard && o.TuneBuckets {
		return errors.New("ddp: Shard and TuneBuckets are set: want one of them, as shards stay where they are")
	}
	if o.LocalAfter > 0 && o.LocalSteps == 0 {
		return fmt.Errorf("ddp: LocalAfter is %d without LocalSteps: want both", o.LocalAfter)
	}
	return nil
}

// Kinds of options.
const (
	general  = iota
	hostOnly // require host memory
	reducers // and replace the allreduce of a bucket
	float32s // of float32 alone
)

// A setting is an option that is set.
type setting struct {
	name string
	kind int
	set  bool
	text string
}

func (o Options) settings() []setting {
	buffers := ""
	for _, b := range o.Buffers {
		buffers += fmt.Sprintf(", buffer %q of %d %v", b.Name, b.Data.Len(), b.Data.Type())
	}
	return slices.DeleteFunc([]setting{
		{"BucketOrder", general, o.BucketOrder != nil,
			fmt.Sprintf("bucket order of digest %016x", digest(fmt.Append(nil, o.BucketOrder)))},
		{"FindUnused", hostOnly, o.FindUnused, "unused parameters"},
		{"Hook", float32s, o.Hook != nil, fmt.Sprintf("hook %v", o.Hook)},
		{"Quantum", float32s, o.Quantum != 0, fmt.Sprintf("quantum %g", o.Quantum)},
		{"TuneBuckets", hostOnly, o.TuneBuckets, "tuned buckets"},
		{"Trace", hostOnly, o.Trace, "trace"},
		{"Shard", reducers, o.Shard, "shards"},
		{"LocalSteps", reducers, o.LocalSteps != 0, fmt.Sprintf("local steps %d after %d", o.LocalSteps, o.LocalAfter)},
		{"Buffers", hostOnly, len(o.Buffers) > 0, strings.TrimPrefix(buffers, ", ")},
	}, func(s setting) bool { return !s.set })
}

// names returns the options that are set, of this kind and the more special ones.
func (o Options) names(kind int) (names []string) {
	for _, s := range o.settings() {
		if s.kind >= kind {
			names = append(names, s.name)
		}
	}
	return names
}

// fit returns an error unless the options suit the parameters, the same on all ranks.
func (o Options) fit(params []*Tensor) error {
	only := o.names(float32s)
	for _, p := range params {
		if err := p.check(); err != nil {
			return err
		}
		if t := p.Data.Type(); len(only) > 0 && t != comm.TypeOf[float32]() {
			return fmt.Errorf("ddp: %s is set and parameter %q has numbers of %v: want float32", only[0], p.Name, t)
		}
	}
	if err := o.checkOrder(len(params)); err != nil {
		return err
	}
	for _, b := range o.Buffers {
		if !b.Data.IsHost() {
			return fmt.Errorf("ddp: buffer %q is in %s: want host memory", b.Name, b.Data.Space().Name())
		}
	}
	return nil
}

// String returns the settings that must be equal on all ranks.
func (o Options) String() string {
	text := fmt.Sprintf("buckets of %d and %d bytes, %d backward passes", o.FirstBucketBytes, o.BucketBytes,
		o.Accumulate)
	for _, s := range o.settings() {
		text += ", " + s.text
	}
	return text
}
