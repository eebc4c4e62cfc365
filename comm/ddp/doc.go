// Package ddp is data-parallel training over comm: every rank holds the whole model, computes
// gradients from its share of each batch, and all ranks make the same step with the average of
// them.
//
// It knows slices, not tensors, so any way to compute gradients can sit on it. A job looks like
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
// Backward adds to each Param.Grad and calls Ready(i) as soon as it has added all it will, best
// from the last layer to the first. Gradients lie in a few buckets. A bucket that is complete is
// averaged over the ranks while backward continues below it, so that only the last bucket's
// communication is waited for in Finish. That needs a processor: a process that computes with as
// many goroutines as GOMAXPROCS leaves none for communication, and gains nothing. Buckets are
// averaged in one order on all ranks, whatever the order in which each rank calls Ready. After the
// first step they are made anew in the order of rank 0, so Param.Grad may move then, and while
// TuneBuckets tries sizes. A job that continues from a snapshot begins with the order of the one
// before: Options.BucketOrder.
//
// Finish averages over ranks. For the average over samples a rank multiplies its gradients by
// (number of ranks) / (samples of the whole batch), as above; then one rank and many follow the
// same curve, even if their shares are uneven.
//
// # Parameters
//
// New takes float32 parameters, NewTensors those of any types that have averages, also mixed. NewOn
// is for a model in the memory of a GPU: work is put on a Stream, and a bucket is averaged when the
// device has come to the end of its gradients, while it computes the next. Finish waits for both.
//
// A Param with a Row is an embedding table: ReadyRows announces the rows that a batch reached, Rows
// returns the average of all ranks' rows, and only those travel. What a model has beside
// parameters, such as the statistics of batch normalisation, is in Options.Buffers, and SyncBuffers
// copies rank 0's to all.
//
// # Steps that differ
//
//   - Accumulate: several backward passes add up, and only the last communicates.
//   - Skip and SkipRest announce parameters that backward left out. With FindUnused Finish does it,
//     and Used reports which parameters had no gradient on any rank.
//   - More and Active: ranks with unequal numbers of batches. Those that have ended add zeros.
//   - ClipGradNorm, after Finish, limits the norm of all gradients together.
//
// # What averages
//
// One of these takes the place of the allreduce of a bucket:
//
//   - Hook: a function of yours, or one of package compress, which sends fewer bytes.
//   - Quantum: sums in fixed point, which are the same bits on any number of ranks. With
//     package sampler's Micro a job makes the same steps, bit by bit, whether one rank computes or
//     four.
//   - Shard (ZeRO, stage 1): a reduce-scatter. Each rank's optimiser steps its Shards, and keeps
//     its memory for these alone; GatherParams then completes the parameters on all ranks.
//   - LocalSteps (local SGD): nothing. Ranks train alone, and AverageParams averages parameters
//     when AverageDue says so.
//
// TuneBuckets finds the size of buckets with which steps are fastest. With Trace, WriteTrace writes
// what every rank did when, for ui.perfetto.dev. Stats reports what communication has cost.
//
// # What is promised
//
// What all ranks must do in the same way is checked where it is cheap: the model and the options
// when training starts, that each gradient is announced exactly once a step, and, where the caller
// asks with CheckReplicas, that the models are still equal. Ranks stay equal bit for bit, because
// an allreduce gives every rank the same bits and everything else is computed from equal numbers. A
// rank that dies ends More, Finish and every other call of the others with an error that names it.
// A step allocates no memory, but where gradients have rows or Trace is set.
//
// # Beside it
//
// Package sampler deals the samples of a data set to the ranks. Package snapshot keeps a job's
// state in a file, from which it continues with any number of ranks: bit by bit with the same
// number, also with a Hook, whose memory MemoryOf finds.
package ddp
