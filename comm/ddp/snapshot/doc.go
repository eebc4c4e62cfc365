// Package snapshot keeps the state of a data-parallel training in one file, from which a job goes
// on as if it had never stopped, with as many ranks as it then has. Rank 0 alone reads and writes
// the file, so no other host needs it.
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
// # What continues in the same way
//
// With as many ranks as saved it, and buckets of the same sizes, a job ends with the bits of one
// that never stopped. The file has the order of the parameters in the buckets, so the first step
// after Load has the buckets of the last before Save. A file of an earlier version has no order.
// Then the first step has buckets from the last parameter to the first, as that of a new job: if
// backward has another order, sums may be rounded, and TopK may choose, in another way. So it is
// with another size of buckets, and with ddp.Options.TuneBuckets, which begins anew.
//
// With another number of ranks the batches are the same, since a Position counts samples of all
// ranks, and so are the buckets. Averages are rounded in another way, but not with
// ddp.Options.Quantum.
//
// # What ranks have for themselves
//
// A Hook may remember what it has not sent yet, and each rank has its own. The file has that of all
// ranks. If their number is another, each gets the average: that is what Hooks add to an average of
// gradients, so all that was not sent before is sent later. A file without such memory, or with
// that of another Hook, can be loaded, too: the Hook then begins with zeros. Load says which it
// was.
//
// With ddp.Options.Shard an optimiser remembers its shards alone: ddp.DDP.GatherShards completes
// them before Save. With ddp.Options.LocalSteps the optimisers' memory differs from rank to rank:
// that of rank 0 is saved.
package snapshot
