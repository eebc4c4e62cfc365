package comm

import "gompi/comm/internal/call"

// Collectives with a block for each rank, of lengths that differ and that all ranks
// know. Who speaks for a host does all the work between hosts.

// countedMost is the bytes of all blocks up to which these go by levels (2x2, by messages
// and levels: allgatherv of 8-byte blocks 148 and 21 us, of 16 KiB 80 and 34, of 256 KiB
// 322 and 232; reduce-scatter of 8-byte blocks 43 and 18, of 16 KiB 60 and 37, of 256 KiB
// 410 and 302). Longer ones have not been measured.
const countedMost = 1 << 20

// A division is how many elements of a vector belong to whom.
type division struct {
	ranks   []int // to each
	starts  []int // where each one's begin, if they lie one after the other
	members []int // to each of this host
	hosts   []int // to the ranks of each
	n       int   // to all
	before  int   // to the ranks of the hosts before this one
}

func newDivision(ranks, members, hosts int) division {
	return division{ranks: make([]int, ranks), starts: make([]int, ranks), members: make([]int, members), hosts: make([]int, hosts)}
}

// divide gives each rank as many elements as counts says.
func (l *levels) divide(counts []int) *division {
	d := &l.parted
	copy(d.ranks, counts)
	for r, n := range counts[:len(counts)-1] {
		d.starts[r+1] = d.starts[r] + n
	}
	d.n = 0
	for h, ranks := range l.hosts {
		first := d.n
		for i, r := range ranks {
			d.n += counts[r]
			if h == l.me.host {
				d.before, d.members[i] = first, counts[r]
			}
		}
		d.hosts[h] = d.n - first
	}
	return d
}

// here returns what belongs to the ranks of this host in a vector by host.
func (l *levels) here(d *division, v Buffer) Buffer {
	return v.Slice(d.before, d.before+d.hosts[l.me.host])
}

// transfer copies blocks between a vector by rank, where they lie at starts, and one by
// host: to the latter if back is false.
func (l *levels) transfer(d *division, byRank Buffer, starts []int, byHost Buffer, back bool) {
	at := 0
	for _, ranks := range l.hosts {
		for _, r := range ranks {
			n := d.ranks[r]
			dst, src := byHost.Slice(at, at+n), byRank.Slice(starts[r], starts[r]+n)
			if back {
				dst, src = src, dst
			}
			copy(dst.HostSlice(), src.HostSlice())
			at += n
		}
	}
}

// Allgatherv sends each host's blocks to each other host once. Where blocks lie may
// differ from rank to rank, and nothing but the last copy depends on it.
func (l *levels) Allgatherv(send, recv Buffer, counts, displs []int) error {
	d := l.divide(counts)
	if d.n*send.Type().Size() > countedMost {
		return l.messages.Allgatherv(send, recv, counts, displs)
	}
	inPlace := l.packed && displs == nil
	speaker, all := l.speak(0), recv
	if !inPlace {
		all = l.p.Scratch(send, d.n)
	}
	mine := l.here(d, all)
	if err := l.inner.Gatherv(speaker, send, mine, d.members, nil); err != nil {
		return err
	}
	if l.me.member == speaker {
		if err := l.speakers.Allgatherv(mine, all, d.hosts, nil); err != nil {
			return err
		}
	}
	if err := l.inner.Bcast(speaker, all); err != nil || inPlace {
		return err
	}
	if displs == nil {
		displs = d.starts
	}
	l.transfer(d, recv, displs, all, true)
	return nil
}

// ReduceScatter combines each host's operands, then the hosts' where they go.
func (l *levels) ReduceScatter(send, recv Buffer, counts []int, op call.Op) error {
	if l.keepsOrder(op) || send.Size() > countedMost {
		return l.messages.ReduceScatter(send, recv, counts, op)
	}
	d, speaker := l.divide(counts), l.speak(0)
	all, mine := l.scratch(speaker, send, d.n), l.scratch(speaker, send, d.hosts[l.me.host])
	if err := l.inner.Reduce(speaker, send, all, op.Base()); err != nil {
		return err
	}
	if l.me.member == speaker {
		if !l.packed {
			byRank := all
			all = l.p.Scratch(send, d.n)
			l.transfer(d, byRank, d.starts, all, false)
		}
		if err := l.speakers.ReduceScatter(all, mine, d.hosts, op.Base()); err != nil {
			return err
		}
		if err := op.Finish(mine, l.p.Size()); err != nil {
			return err
		}
	}
	return l.inner.Scatterv(speaker, mine, recv, d.members, nil)
}
