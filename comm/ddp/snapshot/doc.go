// Package snapshot keeps the state of a data-parallel training in one file. From it a job continues
// as if it had never stopped, with any number of ranks. Rank 0 alone reads and writes the file, so
// no other host needs it.
//
//	hook, err := compress.PowerSGD(compress.PowerSGDOptions{Rank: 2})
//	...
//	state := snapshot.State{Seed: seed, Slices: slices} // parameters and the optimiser's memory
//	state.Hook, err = ddp.MemoryOf(hook, model.Params())
//	...
//	loaded, err := snapshot.Load(ctx, c, path, &state)
//	...
//	opts := ddp.Options{Hook: hook, BucketOrder: state.BucketOrder}
//	d, err := ddp.New(ctx, c, model.Params(), opts)
//	for state.Step < steps {
//		... // a step, which changes Step and Position
//		if state.Step%100 == 0 {
//			state.BucketOrder = d.BucketOrder()
//			err = snapshot.Save(ctx, c, path, &state)
//		}
//	}
//
// # Equality of the continued job
//
// With as many ranks as at Save, and buckets of the same sizes, a job ends with the bits of a job
// that never stopped. The file has the order of the parameters in the buckets, so the first step
// after Load has the buckets of the last before Save. Without State.BucketOrder the first step has
// buckets from the last parameter to the first, like a new job's: if backward has another order,
// sums may be rounded differently, and TopK may choose other numbers. The same holds with another
// size of buckets, and with ddp.Options.TuneBuckets, which begins anew.
//
// With another number of ranks the batches are the same, since a Position counts samples of all
// ranks, and so are the buckets. Averages are rounded differently, except with ddp.Options.Quantum.
//
// # Each rank's own memory
//
// A Hook may keep unsent numbers, different on each rank. The file has the memory of all ranks. If
// their number changes, each gets the average. Hooks add that memory to gradients that are then
// averaged, so all unsent numbers are sent later. A file without such memory, or with another
// Hook's, can be loaded, too: the Hook then begins with zeros. Load reports the case.
//
// With ddp.Options.Shard an optimiser keeps memory of its shards alone: ddp.DDP.GatherShards
// completes it before Save. With ddp.Options.LocalSteps the optimisers' memory differs from rank to
// rank: rank 0's is saved.
package snapshot
