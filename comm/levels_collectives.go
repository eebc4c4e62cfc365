package comm

import "gompi/comm/internal/call"

// The lengths below are from two hosts that are two agents of one machine with two
// processors, talking TCP, with two ranks each (2x2) or four (2x4); float32, medians
// of each call alone. "By messages" is what serves where a user has tuned.
const (
	// shareFrom is the bytes from which on members carry shares of an allreduce, if each
	// has a processor: spokesmen would do the work between hosts alone (2x2, where each
	// rank was granted three tenths of a processor, spokesmen and shares: 256 KiB 537 and
	// 389 us, 1 MiB 3.3 and 1.6 ms, 16 MiB 43 and 34). A crowd gains nothing by it: there
	// is no idle processor (1 MiB: 371 and 523 us). Nor do bcast and reduce: 1 MiB of
	// bcast took 503 and 681 us, of reduce 490 and 916.
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
	// blocks 298 and 161 us, of 256 KiB 444 and 860; gather, 2x2 of 256 KiB blocks 213 and
	// 145 us, scatter 157 and 153, 2x4 324 and 436).
	exchangeMost = 512 << 10
	rootedMost   = 1 << 20

	// functionMost is the bytes of a vector up to which an allreduce with a function goes
	// by levels where a host's ranks are neighbours (2x2, by messages and levels: 8 bytes
	// 44 and 19 us, 16 KiB 45 and 29, 256 KiB 315 and 190). Longer ones have not been
	// measured. A reduce gains nothing (16 KiB: 22 and 38 us back to back).
	functionMost = 256 << 10
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
	l.take(root, b, b, call.Op{})
	return l.inPieces(&bcast)
}

// Reduce combines each host's operands, then the hosts' at the root.
// 2x2 of 8 bytes: by messages 26 us, so 14; of 16 MiB: 13.9 and 8.9 ms.
func (l *levels) Reduce(root int, send, recv Buffer, op call.Op) error {
	if l.keepsOrder(op) {
		return l.messages.Reduce(root, send, recv, op)
	}
	l.take(root, send, recv, op)
	if l.p.Rank() != root {
		l.now.recv = l.scratch(l.now.speaker, send, send.Len())
	}
	if err := l.inPieces(&reduce); err != nil || l.p.Rank() != root {
		return err
	}
	return op.Finish(recv, l.p.Size())
}

// Allreduce combines each host's operands, then the hosts'.
// 2x2 of 8 bytes: by messages 35 us, so 13; of 16 MiB: 17.1 and 12.8 ms; of 8 MiB at
// 1 Gbit/s: 103 and 70 ms.
func (l *levels) Allreduce(send, recv Buffer, op call.Op) error {
	inRankOrder := l.packed && !l.t.Deterministic && send.Size() <= functionMost
	if l.keepsOrder(op) && !inRankOrder {
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
func (l *levels) ReduceScatterBlock(send, recv Buffer, op call.Op) error {
	if l.keepsOrder(op) || !l.even {
		return l.messages.ReduceScatterBlock(send, recv, op)
	}
	n := recv.Len()
	if send.Size() >= scatterShareFrom {
		return l.reduceScatterShares(l.byHost(send, n), recv, op)
	}
	speaker := l.speak(0)
	all, mine := l.scratch(speaker, send, send.Len()), l.scratch(speaker, send, len(l.shares)*n)
	if err := l.inner.Reduce(speaker, send, all, op.Base()); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.ReduceScatterBlock(l.byHost(all, n), mine, op.Base()); err != nil {
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
func (l *levels) reduceScatterShares(send, recv Buffer, op call.Op) error {
	n := recv.Len()
	parts := l.p.Scratch(send, len(l.hosts)*n)
	for h := range l.hosts {
		if err := l.inner.ReduceScatterBlock(l.block(send, h, n), parts.Slice(h*n, (h+1)*n), op.Base()); err != nil {
			return err
		}
	}
	if err := l.lane.ReduceScatterBlock(parts, recv, op.Base()); err != nil {
		return err
	}
	return op.Finish(recv, l.p.Size())
}

// Allgather sends each block to each host once.
// 2x2 of 8 bytes: by messages 93 us, so 19; of 16 MiB: 58 and 39 ms; of 8 MiB at
// 1 Gbit/s: 215 and 152 ms.
func (l *levels) Allgather(send, recv Buffer) error {
	if !l.even {
		return l.messages.Allgather(send, recv)
	}
	n, all := send.Len(), l.placeByHost(recv)
	err := l.allgather(send, all)
	if err == nil {
		l.byRank(recv, all, n)
	}
	return err
}

func (l *levels) allgather(send, all Buffer) error {
	if all.Size() >= gatherShareFrom {
		return l.allgatherShares(send, all)
	}
	speaker, mine := l.speak(0), l.block(all, l.me.host, send.Len())
	if err := l.inner.Gather(speaker, send, mine); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.Allgather(mine, all); err != nil {
			return err
		}
	}
	return l.inner.Bcast(speaker, all)
}

// allgatherShares has each member fetch the blocks of those with its number, for all
// of its host.
func (l *levels) allgatherShares(send, all Buffer) error {
	n := send.Len()
	fetched := l.p.Scratch(send, len(l.hosts)*n)
	if err := l.lane.Allgather(send, fetched); err != nil {
		return err
	}
	for h := range l.hosts {
		if err := l.inner.Allgather(fetched.Slice(h*n, (h+1)*n), l.block(all, h, n)); err != nil {
			return err
		}
	}
	return nil
}

// Alltoall has each member exchange, with those of its number, what is for all of
// their hosts.
// 2x2 of 1 KiB blocks: by messages 175 us, so 26; 2x4: 407 and 86.
func (l *levels) Alltoall(send, recv Buffer) error {
	if !l.even || send.Size() > exchangeMost {
		return l.messages.Alltoall(send, recv)
	}
	n := send.Len() / l.p.Size()
	parts, all := l.p.Scratch(send, send.Len()), l.placeByHost(recv)
	if err := l.lane.Alltoall(l.byHost(send, n), parts); err != nil {
		return err
	}
	for h := range l.hosts {
		if err := l.inner.Alltoall(l.block(parts, h, n), l.block(all, h, n)); err != nil {
			return err
		}
	}
	l.byRank(recv, all, n)
	return nil
}

// Gather has one message come from each host.
// 2x2 of 8 bytes: by messages 119 us, so 13; of 128 KiB blocks: 133 and 75.
func (l *levels) Gather(root int, send, recv Buffer) error {
	if !l.even || send.Size()*l.p.Size() > rootedMost {
		return l.messages.Gather(root, send, recv)
	}
	n, speaker := send.Len(), l.speak(root)
	var all, mine Buffer
	if l.p.Rank() == root {
		all = l.placeByHost(recv)
		mine = l.block(all, l.me.host, n)
	} else {
		mine = l.scratch(speaker, send, len(l.shares)*n)
	}
	if err := l.inner.Gather(speaker, send, mine); err != nil || l.me.member != speaker {
		return err
	}
	err := l.speakers.Gather(l.seats[root].host, mine, all)
	if err == nil && l.p.Rank() == root {
		l.byRank(recv, all, n)
	}
	return err
}

// Scatter has one message go to each host.
// 2x2 of 8 bytes: by messages 26 us, so 10; of 128 KiB blocks: 86 and 63.
func (l *levels) Scatter(root int, send, recv Buffer) error {
	if !l.even || recv.Size()*l.p.Size() > rootedMost {
		return l.messages.Scatter(root, send, recv)
	}
	n, speaker := recv.Len(), l.speak(root)
	if l.p.Rank() == root {
		send = l.byHost(send, n)
	}
	mine := l.scratch(speaker, recv, len(l.shares)*n)
	if l.me.member == speaker {
		if err := l.speakers.Scatter(l.seats[root].host, send, mine); err != nil {
			return err
		}
	}
	return l.inner.Scatter(speaker, mine, recv)
}
