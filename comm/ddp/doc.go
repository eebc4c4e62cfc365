// Package ddp is data-parallel training over comm: every rank holds the whole
// model, computes gradients from its share of each batch, and all ranks make
// the same step with the average of them.
//
// It knows slices, not tensors, so any way to compute gradients can sit on it.
// A job looks like this:
//
//	d, err := ddp.New(ctx, c, model.Params(), ddp.Options{})
//	sampler, err := ddp.NewSampler(len(data), batch, seed, ddp.Short)
//	at := ddp.Position{}
//	for at.Epoch < epochs {
//		share, total, next := sampler.Next(nil, at, c.Rank(), c.Size())
//		d.ZeroGrad()
//		model.Backward(data, share, c.Size()/total, d.Ready)
//		if err := d.Finish(ctx); err != nil {
//			return err
//		}
//		optimiser.Step()
//		at = next
//	}
//
// Backward adds to each Param.Grad and calls Ready(i) as soon as it has added
// all it will, best from the last layer to the first. Gradients lie in a few
// buckets; a bucket that is complete is averaged over the ranks while backward
// goes on below it, so that only the last bucket's communication is waited for
// in Finish. That needs a processor: a process that computes with as many
// goroutines as GOMAXPROCS leaves none for communication, and gains nothing.
//
// Finish averages over ranks. For the average over samples a rank multiplies
// its gradients by (number of ranks) / (samples of the whole batch), as above;
// then one rank and many follow the same curve, even if their shares are uneven.
//
// NewOn is the same for a model in the memory of a GPU: parameters are Tensors, work
// is put on a Stream, and a bucket is averaged when the device has come to the end of
// its gradients, while it computes the next. Finish does not wait for the averages: the
// Stream does, before what is put there next, such as the optimiser's step. Wait is for
// programs that must know, before they save what came of them, say.
//
// What all ranks must do in the same way is checked where it is cheap: the
// model when training starts, that each gradient is announced exactly once a
// step, and, where the caller asks with CheckReplicas, that the models are still
// equal. Ranks stay equal bit for bit, because an allreduce gives every rank
// the same bits and everything else is computed from equal numbers.
//
// Save and Load keep a job's state in one file, which rank 0 alone writes and
// reads. A job may go on with another number of ranks than it was saved with.
package ddp
