package measure

import "gompi/internal/mem"

// The calls.

func runBarrier(k *cell) error { return k.c.Barrier(k.ctx) }

func runBcast(k *cell) error {
	data := k.recv
	if k.rank == 0 {
		data = k.send
	}
	return k.c.Bcast(k.ctx, 0, data)
}

func runReduce(k *cell) error    { return k.c.Reduce(k.ctx, 0, k.send, k.recv, k.redop) }
func runAllreduce(k *cell) error { return k.c.Allreduce(k.ctx, k.send, k.recv, k.redop) }
func runIallreduce(k *cell) error {
	_, err := k.c.Iallreduce(k.send, k.recv, k.redop).Wait(k.ctx)
	return err
}
func runAllgather(k *cell) error     { return k.c.Allgather(k.ctx, k.send, k.recv) }
func runReduceScatter(k *cell) error { return k.c.ReduceScatterBlock(k.ctx, k.send, k.recv, k.redop) }
func runAlltoall(k *cell) error      { return k.c.Alltoall(k.ctx, k.send, k.recv) }
func runGather(k *cell) error        { return k.c.Gather(k.ctx, 0, k.send, k.recv) }
func runScatter(k *cell) error       { return k.c.Scatter(k.ctx, 0, k.send, k.recv) }
func runScan(k *cell) error          { return k.c.Scan(k.ctx, k.send, k.recv, k.redop) }

// The expected results of collectives. Every rank's send begins with the rank's pattern.

func fromRoot(k *cell) ([]part, error) {
	if k.rank == 0 {
		return nil, nil
	}
	return []part{{k.recv, k.inputs.by[0], 0}}, nil
}

func reducedAtRoot(k *cell) ([]part, error) {
	if k.rank != 0 {
		return nil, nil
	}
	return reducedEverywhere(k)
}

func reducedEverywhere(k *cell) ([]part, error) { return k.reduced(k.np, 0) }
func reducedUpTo(k *cell) ([]part, error)       { return k.reduced(k.rank+1, 0) }
func reducedBlock(k *cell) ([]part, error)      { return k.reduced(k.np, k.rank*k.n) }

// reduced expects in recv the reduction over the first ranks, from element phase on.
func (k *cell) reduced(ranks, phase int) ([]part, error) {
	want, err := k.inputs.reduced(k.redop, ranks)
	return []part{{k.recv, want, phase}}, err
}

// gathered expects one block from each rank, on ranks that receive blocks.
func gathered(k *cell) ([]part, error) { return k.fromEach(0), nil }

// exchanged expects this rank's block of each rank's vector.
func exchanged(k *cell) ([]part, error) { return k.fromEach(k.rank * k.n), nil }

func (k *cell) fromEach(phase int) []part {
	if k.recv.Len() == 0 {
		return nil
	}
	var parts []part
	for rank := range k.np {
		parts = append(parts, part{block(k.recv, rank, k.n), k.inputs.by[rank], phase})
	}
	return parts
}

func scattered(k *cell) ([]part, error) {
	return []part{{k.recv, k.inputs.by[0], k.rank * k.n}}, nil
}

// block returns the i-th block of n elements.
func block(b mem.Buffer, i, n int) mem.Buffer { return b.Slice(i*n, (i+1)*n) }
