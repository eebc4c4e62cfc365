// Package ddp is data-parallel training over comm: every rank holds the whole model, computes
// gradients from its share of each batch, and all ranks make the same step with the average
// gradients.
//
// The package knows slices, not tensors, so any way to compute gradients fits. A job looks like
// this:
//
//	d, err := ddp.New(ctx, c, model.Params(), ddp.Options{})
//	s, err := sampler.New(len(data), batch, seed, sampler.Short)
//	at := sampler.Position{}
//	for at.Epoch < epochs {
//		share, total, next := s.Next(nil, at, c.Rank(), c.Size())
//		d.ZeroGrad()
//		model.Backward(data, share, c.Size()/total, d.Ready)
//		if err := d.Finish(ctx); err != nil {
//			return err
//		}
//		optimiser.Step()
//		at = next
//	}
//
// Backward adds to each Param.Grad and calls Ready(i) as soon as that gradient is complete, best
// from the last layer to the first. Gradients lie in a few buckets. A complete bucket is averaged
// over the ranks while backward continues below it, so that Finish waits only for the last bucket's
// communication. That needs a processor: a process that computes with as many goroutines as
// GOMAXPROCS leaves none for communication, and gains nothing. All ranks average buckets in the
// same order, whatever the order in which each rank calls Ready. After the first step buckets are
// made anew in the order of rank 0, so Param.Grad may move then, and while TuneBuckets tries sizes.
// A job that continues from a snapshot begins with the earlier job's order: Options.BucketOrder.
//
// Finish averages over ranks. For the average over samples a rank multiplies its gradients by
// (number of ranks) / (samples of the whole batch), as above. Then one rank and many follow the
// same curve, even if their shares are uneven.
//
// # Parameters
//
// New takes float32 parameters, NewTensors parameters of any types that have averages, also mixed.
// NewOn is for a model in the memory of a GPU: work is put on a Stream, and a bucket is averaged
// when the device has computed its gradients, while it computes the next. Finish waits for both.
//
// A Param with a Row is an embedding table. ReadyRows announces the rows that a batch reached, Rows
// returns the average of all ranks' rows, and only these rows travel. Other state of a model, such
// as the statistics of batch normalisation, is in Options.Buffers. SyncBuffers copies rank 0's to
// all.
//
// # Steps that differ
//
//   - Accumulate: several backward passes add up, and only the last communicates.
//   - Skip and SkipRest announce parameters that backward left out. With FindUnused, Finish does
//     so, and Used reports whether a parameter had a gradient on any rank.
//   - More and Active: ranks with unequal numbers of batches. Ranks without a batch add zeros.
//   - ClipGradNorm, after Finish, limits the norm of all gradients together.
//
// # Ways to average
//
// One of these replaces the allreduce of a bucket:
//
//   - Hook: the program's function, or one of package compress, which sends fewer bytes.
//   - Quantum: sums in fixed point, with the same bits on any number of ranks. With package
//     sampler's Micro a job makes the same steps, bit by bit, whether one rank computes or four.
//   - Shard (ZeRO, stage 1): a reduce-scatter. Each rank's optimiser steps its Shards, and keeps
//     its memory for these alone; GatherParams then completes the parameters on all ranks.
//   - LocalSteps (local SGD): nothing. Ranks train alone, and AverageParams averages parameters
//     when AverageDue returns true.
//
// TuneBuckets finds the bucket size of the fastest steps. With Trace, WriteTrace writes a timeline
// of every rank, for ui.perfetto.dev. Stats reports the costs of communication.
//
// # Guarantees
//
// Uniform behaviour of the ranks is checked where a check is cheap: the model and the options at
// the start, one announcement of each gradient in a step, and, if the caller asks with
// CheckReplicas, the equality of the models. Ranks stay equal bit for bit, because an allreduce
// gives every rank the same bits and everything else is computed from equal numbers. If a rank
// dies, More, Finish and every other call of the others fail with an error that names it. A step
// allocates no memory, unless gradients have rows or Trace is set.
//
// # Related packages
//
// Package sampler deals the samples of a data set to the ranks. Package snapshot keeps a job's
// state in a file, from which a job continues with any number of ranks: bit by bit with the same
// number, also with a Hook, whose memory MemoryOf finds.
package ddp
