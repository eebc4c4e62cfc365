package comm

import "gompi/comm/internal/coll"

// The lengths below are from two hosts that are two agents of one machine with two
// processors, talking TCP, with two ranks each (2x2) or four (2x4); float32, medians
// of each call alone. "By messages" is what serves where a user has tuned.
const (
	// shareFrom is the bytes of a vector from which on members carry shares of it, if
	// each has a processor: spokesmen would do all the work alone (2x2, where each
	// rank was granted two fifths of a processor, one spokesman and shares: allreduce of
	// 256 KiB 274 and 186 us, of 16 MiB 38.6 and 22.0 ms; bcast 287 and 97 us, 14.4 and
	// 8.2 ms; reduce of 1 MiB 940 and 556 us, of 16 MiB 19.0 and 11.8 ms). A crowd
	// gains nothing by it: there is no idle processor (2x2, allreduce of 1 MiB: 371 and
	// 523 us; 2x4, bcast of 1 MiB: 480 and 817).
	shareFrom = 256 << 10

	// scatterShareFrom, gatherShareFrom are the same for vectors with a block for each
	// rank, where shares need no further step (reduce-scatter, 2x2 of 64 KiB blocks with
	// two fifths of a processor: 186 and 157 us, of 256 KiB blocks without: 573 and 320;
	// 2x4 of 16 KiB blocks: 77 and 170. Allgather, 2x4 of 64 KiB blocks: 137 and 265 us,
	// of 1 MiB blocks: 9.7 and 7.1 ms).
	scatterShareFrom = 512 << 10
	gatherShareFrom  = 1 << 20

	// exchangeMost and rootedMost are the bytes of all blocks up to which alltoall, and
	// gather and scatter go by levels: of longer ones no byte is saved between hosts, and
	// each is moved once more inside (by messages and levels: alltoall, 2x2 of 128 KiB
	// blocks 298 and 161 us, of 1 MiB 2.3 and 3.6 ms; scatter, 2x4 of 256 KiB blocks 603
	// and 364 us, 2x2 of 1 MiB 590 and 797 us).
	exchangeMost = 1 << 20
	rootedMost   = 2 << 20
)

// Barrier makes the hosts' spokesmen meet.
// 2x2: by messages 73 us, so 12.
func (l *levels) Barrier() error {
	speaker := l.speak(0)
	if err := l.inner.Barrier(); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.Barrier(); err != nil {
			return err
		}
	}
	return l.inner.Bcast(speaker, Buffer{})
}

// Bcast sends b to each host once.
// 2x2 of 8 bytes: by messages 36 us, so 10; of 16 MiB: 10.3 and 6.7 ms.
func (l *levels) Bcast(root int, b Buffer) error {
	l.take(root, b, b, coll.Op{})
	if b.Size() >= l.shareFrom {
		return l.inPieces(&bcastShared)
	}
	return l.inPieces(&bcastSpoken)
}

// Reduce combines each host's operands, then the hosts' at the root.
// 2x2 of 8 bytes: by messages 26 us, so 14; of 16 MiB: 13.9 and 8.9 ms.
func (l *levels) Reduce(root int, send, recv Buffer, op coll.Op) error {
	if l.keepsOrder(op) {
		return l.messages.Reduce(root, send, recv, op)
	}
	l.take(root, send, recv, op)
	f, combines := &reduceSpoken, l.me.member == l.now.speaker
	if send.Size() >= l.shareFrom {
		f, combines = &reduceShared, true
	}
	switch {
	case l.p.Rank() == root:
	case combines:
		l.now.recv = l.p.Scratch(send, send.Len())
	default:
		l.now.recv = Buffer{}
	}
	if err := l.inPieces(f); err != nil || l.p.Rank() != root {
		return err
	}
	return op.Finish(recv, l.p.Size())
}

// Allreduce combines each host's operands, then the hosts'.
// 2x2 of 8 bytes: by messages 35 us, so 13; of 16 MiB: 17.1 and 12.8 ms; of 8 MiB at
// 1 Gbit/s: 103 and 70 ms.
func (l *levels) Allreduce(send, recv Buffer, op coll.Op) error {
	if l.keepsOrder(op) {
		return l.messages.Allreduce(send, recv, op)
	}
	l.take(0, send, recv, op)
	if send.Size() >= l.shareFrom {
		return l.inPieces(&allreduceShared)
	}
	return l.inPieces(&allreduceSpoken)
}

// ReduceScatterBlock combines each host's operands, then the hosts' where they go.
// 2x2 of 1 KiB blocks: by messages 49 us, so 17; of 16 MiB: 52 and 45 ms; of 8 MiB at
// 1 Gbit/s: 343 and 170 ms.
func (l *levels) ReduceScatterBlock(send, recv Buffer, op coll.Op) error {
	switch {
	case l.keepsOrder(op) || !l.regular:
		return l.messages.ReduceScatterBlock(send, recv, op)
	case send.Size() >= scatterShareFrom:
		return l.reduceScatterShares(send, recv, op)
	}
	speaker := l.speak(0)
	all, mine := l.scratch(speaker, send, send.Len()), l.scratch(speaker, send, len(l.shares)*recv.Len())
	if err := l.inner.Reduce(speaker, send, all, sum(op)); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.ReduceScatterBlock(all, mine, sum(op)); err != nil {
			return err
		}
		if err := op.Finish(mine, l.p.Size()); err != nil {
			return err
		}
	}
	return l.inner.Scatter(speaker, mine, recv)
}

// reduceScatterShares has each member combine, in its host, the blocks of those with
// its number on all hosts.
func (l *levels) reduceScatterShares(send, recv Buffer, op coll.Op) error {
	n := recv.Len()
	parts := l.p.Scratch(send, len(l.hosts)*n)
	for h := range l.hosts {
		if err := l.inner.ReduceScatterBlock(l.block(send, h, n), parts.Slice(h*n, (h+1)*n), sum(op)); err != nil {
			return err
		}
	}
	if err := l.lane.ReduceScatterBlock(parts, recv, sum(op)); err != nil {
		return err
	}
	return op.Finish(recv, l.p.Size())
}

// Allgather sends each block to each host once.
// 2x2 of 8 bytes: by messages 93 us, so 19; of 16 MiB: 58 and 39 ms; of 8 MiB at
// 1 Gbit/s: 215 and 152 ms.
func (l *levels) Allgather(send, recv Buffer) error {
	switch {
	case !l.regular:
		return l.messages.Allgather(send, recv)
	case recv.Size() >= gatherShareFrom:
		return l.allgatherShares(send, recv)
	}
	speaker, mine := l.speak(0), l.block(recv, l.me.host, send.Len())
	if err := l.inner.Gather(speaker, send, mine); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.Allgather(mine, recv); err != nil {
			return err
		}
	}
	return l.inner.Bcast(speaker, recv)
}

// allgatherShares has each member fetch the blocks of those with its number, for all
// of its host.
func (l *levels) allgatherShares(send, recv Buffer) error {
	n := send.Len()
	fetched := l.p.Scratch(send, len(l.hosts)*n)
	if err := l.lane.Allgather(send, fetched); err != nil {
		return err
	}
	for h := range l.hosts {
		if err := l.inner.Allgather(fetched.Slice(h*n, (h+1)*n), l.block(recv, h, n)); err != nil {
			return err
		}
	}
	return nil
}

// Alltoall has each member exchange, with those of its number, what is for all of
// their hosts.
// 2x2 of 1 KiB blocks: by messages 175 us, so 26; 2x4: 407 and 86.
func (l *levels) Alltoall(send, recv Buffer) error {
	if !l.regular || send.Size() > exchangeMost {
		return l.messages.Alltoall(send, recv)
	}
	n := send.Len() / l.p.Size()
	parts := l.p.Scratch(send, send.Len())
	if err := l.lane.Alltoall(send, parts); err != nil {
		return err
	}
	for h := range l.hosts {
		if err := l.inner.Alltoall(l.block(parts, h, n), l.block(recv, h, n)); err != nil {
			return err
		}
	}
	return nil
}

// Gather has one message come from each host.
// 2x2 of 8 bytes: by messages 119 us, so 13; 2x4 of 256 KiB blocks: 619 and 308.
func (l *levels) Gather(root int, send, recv Buffer) error {
	if !l.regular || send.Size()*l.p.Size() > rootedMost {
		return l.messages.Gather(root, send, recv)
	}
	n, speaker := send.Len(), l.speak(root)
	var mine Buffer
	if l.p.Rank() == root {
		mine = l.block(recv, l.me.host, n)
	} else {
		mine = l.scratch(speaker, send, len(l.shares)*n)
	}
	if err := l.inner.Gather(speaker, send, mine); err != nil {
		return err
	}
	if l.me.member != speaker {
		return nil
	}
	return l.speakers.Gather(l.seats[root].host, mine, recv)
}

// Scatter has one message go to each host.
// 2x2 of 8 bytes: by messages 26 us, so 10; 2x4 of 256 KiB blocks: 603 and 364.
func (l *levels) Scatter(root int, send, recv Buffer) error {
	if !l.regular || recv.Size()*l.p.Size() > rootedMost {
		return l.messages.Scatter(root, send, recv)
	}
	speaker := l.speak(root)
	mine := l.scratch(speaker, recv, len(l.shares)*recv.Len())
	if l.me.member == speaker {
		if err := l.speakers.Scatter(l.seats[root].host, send, mine); err != nil {
			return err
		}
	}
	return l.inner.Scatter(speaker, mine, recv)
}
