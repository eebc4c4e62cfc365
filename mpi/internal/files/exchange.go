package files

import (
	"encoding/binary"
	"math/bits"
	"sort"
	"sync"

	"gompi/internal/core/call"
	"gompi/internal/core/layout"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/dtypes"
)

// Collective accesses whose short runs interleave are done in two phases: some ranks, the
// aggregators, each have a part of the file, and move this part in long runs. The data goes
// between aggregators and its owners in messages. In all other accesses each rank moves its own
// data, in its own calls of the system. All ranks make the same choice, from the facts that they
// exchange.

// Measurements (AMD EPYC, family 25, model 17, two virtual processors, np=2, a file in the page
// cache) decide these; docs/mpi.md has the cells.
const (
	shortRun        = 4 << 10 // bytes: with longer runs each rank is as fast alone
	fewRuns         = 64      // of a rank: the exchange takes longer than so many calls of the system
	windowSize      = 1 << 20 // bytes of the file that an aggregator moves at a time
	mostAggregators = 4       // an inode is written by only one process at a time
	alignment       = 4 << 10 // of the aggregators' parts
)

// AccessAll is a blocking collective access.
func AccessAll(write bool, p Place, f *File, buf abi.Addr, n int, t *dtypes.Datatype, st *abi.Status) error {
	a, err := f.prepare(write, p, buf, n, t)
	if f.exchanges() {
		x, e := f.plan(f.all(p.function(write)), a, err)
		if e != nil {
			return e
		}
		if x != nil {
			moved, err := x.move()
			st.Set(statusOf(moved))
			return err
		}
	}
	if err != nil {
		return err
	}
	moved, err := a.move()
	st.Set(statusOf(moved))
	return err
}

// exchanges reports whether an access may be an exchange: all ranks say the same.
func (f *File) exchanges() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scattered && !f.atomic
}

// An exchange is an access in two phases. Fields are the same on all ranks unless stated.
type exchange struct {
	*access        // this rank's
	team           team
	lo, part       int // aggregator i has part bytes from lo+i*part on
	aggregators    int
	window, rounds int
}

// plan returns the exchange for an access of all ranks, nil if each rank moves its own data. err
// is the error of this rank's access a. An error of any rank is an error on all.
func (f *File) plan(t team, a *access, err error) (*exchange, error) {
	mine := []int64{0, 0, 0, 0}
	if err == nil && a.n > 0 {
		runs := a.n / a.v.run
		if a.v.run > shortRun {
			runs = -1
		}
		mine = []int64{int64(a.v.offset(a.at)), int64(a.v.offset(a.at+a.n-1) + 1), int64(a.n), int64(runs)}
	}
	all, err := t.gather(err, nil, mine)
	if err != nil {
		return nil, err
	}
	lo, hi, bytes, runs := 0, 0, 0, 0
	for ; len(all) > 0; all = all[4:] {
		switch {
		case all[2] == 0:
			continue
		case all[3] < 0:
			return nil, nil
		case bytes == 0:
			lo = int(all[0])
		}
		lo, hi = min(lo, int(all[0])), max(hi, int(all[1]))
		bytes, runs = bytes+int(all[2]), max(runs, int(all[3]))
	}
	if runs < fewRuns || 2*bytes < hi-lo {
		return nil, nil
	}
	return newExchange(t, a, lo, hi, min(mostAggregators, t.c.Size()), windowSize, alignment), nil
}

// newExchange divides the bytes from lo to hi between aggregators.
func newExchange(t team, a *access, lo, hi, aggregators, window, alignment int) *exchange {
	x := &exchange{access: a, team: t, lo: lo / alignment * alignment, aggregators: aggregators, window: window}
	x.part = roundUp((hi-x.lo+aggregators-1)/aggregators, alignment)
	x.rounds = (x.part + window - 1) / window
	return x
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// rank returns the rank of aggregator i. Aggregators are spread evenly over the ranks, and so over
// hosts.
func (x *exchange) rank(i int) int { return i * x.team.c.Size() / x.aggregators }

// bounds returns the range of the file that aggregator i moves in a round.
func (x *exchange) bounds(i, round int) (from, to int) {
	from = x.lo + i*x.part + round*x.window
	return from, min(from+x.window, x.lo+(i+1)*x.part)
}

// position returns the number of bytes of this rank's data before off in the file.
func (x *exchange) position(off int) int {
	return sort.Search(x.n, func(i int) bool { return x.v.offset(x.at+i) >= off })
}

// A train is count runs of n bytes, stride bytes apart, from off in a window on.
type train struct{ off, n, count, stride int }

const trainBytes = 16

func (t train) layout() layout.Layout {
	run := layout.Run(t.n)
	return run.Times(t.count, t.stride).At(t.off)
}

func (t train) put(b []byte) []byte {
	for _, x := range []int{t.off, t.n, t.count, t.stride} {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

func trainOf(b []byte) train {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	return train{word(0), word(1), word(2), word(3)}
}

// rooms are the buffers of an exchange.
type rooms struct {
	window    []byte   // of the file, of an aggregator
	covered   []uint64 // a bit for each written byte of the window
	out, in   []byte
	outs, ins []int // bytes to and from each rank
	sizes     []int64
}

var roomPool = sync.Pool{New: func() any { return new(rooms) }}

func room[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
	return *s
}

// move does this rank's part of the exchange, and returns the number of bytes of its data that have
// moved. A failure on any rank is a failure on all.
func (x *exchange) move() (moved int, err error) {
	r := roomPool.Get().(*rooms)
	defer roomPool.Put(r)
	size := x.team.c.Size()
	room(&r.outs, size)
	room(&r.ins, size)
	room(&r.sizes, 4*size)
	own := -1 // which aggregator this rank is
	at, got, whole := make([]int, x.aggregators+1), make([]int, x.aggregators), true
	for i := range x.aggregators {
		if x.rank(i) == x.team.c.Rank() {
			own = i
		}
		from, _ := x.bounds(i, 0)
		at[i] = x.position(from)
	}
	at[x.aggregators] = x.n
	next := append([]int(nil), at[:x.aggregators]...)
	for round := range x.rounds {
		before := append([]int(nil), next...)
		if e := x.request(r, round, next); e != nil {
			return 0, e
		}
		served, e := x.serve(r, own, round)
		if err == nil {
			err = e
		}
		if x.write {
			continue
		}
		if e := x.collect(r, served, before, next, at, got); e != nil {
			return 0, e
		}
	}
	if err = x.team.agree(err); err != nil {
		return 0, err
	}
	if x.write {
		return x.n, nil
	}
	for i := 0; i < x.aggregators && whole; i++ {
		moved += got[i]
		whole = got[i] == at[i+1]-at[i]
	}
	return moved, nil
}

// request sends the aggregators this rank's requests of a round: trains, and the data to write.
// next is the index at which the data for each aggregator begins; request advances it. The requests
// received are in r.in.
func (x *exchange) request(r *rooms, round int, next []int) error {
	size := x.team.c.Size()
	clear(r.outs)
	clear(r.sizes)
	r.out = r.out[:0]
	memory := x.t.Layout(x.count)
	for i := range next {
		from, to := x.bounds(i, round)
		begin := next[i]
		end := x.n
		if to < x.lo+x.aggregators*x.part {
			end = x.position(to)
		}
		next[i] = max(begin, end)
		before := len(r.out)
		x.v.trains(x.at+begin, next[i]-begin,
			func(t train) { r.out = train{t.off - from, t.n, t.count, t.stride}.put(r.out) })
		k := x.rank(i)
		r.sizes[2*k] = int64(len(r.out)-before) / trainBytes
		r.sizes[2*k+1] = int64(next[i] - begin)
		if x.write {
			n := next[i] - begin
			data := len(r.out)
			r.out = append(r.out, make([]byte, n)...)
			memory.Pack(r.out[data:], uintptr(x.buf), begin)
		}
		r.outs[k] = len(r.out) - before
	}
	c, in := x.team.c, x.team.in
	if err := c.Do(in, new(call.Call).Alltoall(mem.Of(r.sizes[:2*size]), mem.Of(r.sizes[2*size:]))); err != nil {
		return err
	}
	all := 0
	for k := range size {
		r.ins[k] = int(r.sizes[2*(size+k)]) * trainBytes
		if x.write {
			r.ins[k] += int(r.sizes[2*(size+k)+1])
		}
		all += r.ins[k]
	}
	return c.Do(in, new(call.Call).Alltoallv(mem.Of(r.out), r.outs, nil, mem.Of(room(&r.in, all)), r.ins, nil))
}

// each calls do for each rank's request: its trains, and the data after them.
func (x *exchange) each(r *rooms, do func(rank int, trains, data []byte)) {
	in, size := r.in, len(r.ins)
	for k, n := range r.ins {
		head := int(r.sizes[2*(size+k)]) * trainBytes
		do(k, in[:head], in[head:n])
		in = in[n:]
	}
}

// serve does an aggregator's work on its window: it writes the received data, or reads the
// requested bytes, and returns the end of the file's data in the window.
func (x *exchange) serve(r *rooms, own, round int) (end int, err error) {
	if own < 0 || len(r.in) == 0 {
		return 0, nil
	}
	from, to := x.bounds(own, round)
	if room(&r.window, to-from); x.write {
		return 0, x.writeWindow(r, from)
	}
	lo, hi := to-from, 0
	x.each(r, func(_ int, trains, _ []byte) {
		for ; len(trains) > 0; trains = trains[trainBytes:] {
			t := trainOf(trains)
			lo, hi = min(lo, t.off), max(hi, t.off+(t.count-1)*t.stride+t.n)
		}
	})
	k, err := x.call([][]byte{r.window[lo:hi]}, from+lo)
	return from + lo + k, failed("read", x.f.name, err)
}

// writeWindow writes the bytes of a window that ranks have sent, and no others: the bytes between
// may belong to another writer of the file.
func (x *exchange) writeWindow(r *rooms, from int) error {
	clear(room(&r.covered, (len(r.window)+63)/64))
	base := uintptr(addressOf(r.window))
	x.each(r, func(_ int, trains, data []byte) {
		for ; len(trains) > 0; trains = trains[trainBytes:] {
			t := trainOf(trains)
			l := t.layout()
			data = data[l.Unpack(base, data[:t.n*t.count], 0):]
			for i, off := 0, t.off; i < t.count; i, off = i+1, off+t.stride {
				cover(r.covered, off, t.n)
			}
		}
	})
	for at := 0; ; {
		begin, end := nextCovered(r.covered, at, len(r.window))
		if begin == end {
			return nil
		}
		if _, err := x.call([][]byte{r.window[begin:end]}, from+begin); err != nil {
			return failed("write", x.f.name, err)
		}
		at = end
	}
}

// cover sets n bits from at on.
func cover(set []uint64, at, n int) {
	for n > 0 {
		bit := at & 63
		k := min(n, 64-bit)
		set[at>>6] |= ^uint64(0) >> (64 - k) << bit
		at, n = at+k, n-k
	}
}

// nextCovered returns the first run of bits that are set from at on, of n; begin is end if there is
// none.
func nextCovered(set []uint64, at, n int) (begin, end int) {
	begin = skipBits(set, at, n, 0)
	return begin, skipBits(set, begin, n, ^uint64(0))
}

// skipBits returns the first index from at on at which set and what differ, n if there is none.
func skipBits(set []uint64, at, n int, what uint64) int {
	for at < n {
		if w := (set[at>>6] ^ what) >> (at & 63); w != 0 {
			return min(n, at+bits.TrailingZeros64(w))
		}
		at = at&^63 + 64
	}
	return n
}

// collect sends the ranks the requested data of an aggregator's window, which has data up to end in
// the file, and stores the data received. got receives the number of valid bytes from each
// aggregator.
func (x *exchange) collect(r *rooms, end int, before, next, first, got []int) error {
	size := len(r.ins)
	r.out = r.out[:0]
	base := uintptr(0)
	if len(r.window) > 0 {
		base = uintptr(addressOf(r.window))
	}
	x.each(r, func(k int, trains, _ []byte) {
		r.outs[k] = 0
		if len(trains) == 0 {
			return
		}
		begin := len(r.out)
		r.out = binary.LittleEndian.AppendUint64(r.out, uint64(end))
		data := len(r.out)
		r.out = append(r.out, make([]byte, r.sizes[2*(size+k)+1])...)
		for ; len(trains) > 0; trains = trains[trainBytes:] {
			t := trainOf(trains)
			l := t.layout()
			data += l.Pack(r.out[data:data+t.n*t.count], base, 0)
		}
		r.outs[k] = len(r.out) - begin
	})
	all := 0
	clear(r.ins)
	for i := range next {
		if n := next[i] - before[i]; n > 0 {
			r.ins[x.rank(i)] = 8 + n
			all += 8 + n
		}
	}
	if err := x.team.c.Do(x.team.in, new(call.Call).Alltoallv(mem.Of(r.out), r.outs, nil, mem.Of(room(&r.in, all)),
		r.ins, nil)); err != nil {
		return err
	}
	memory, in := x.t.Layout(x.count), r.in
	for i := range next { // aggregators are in the order of their ranks
		n := next[i] - before[i]
		if n == 0 {
			continue
		}
		valid := min(n, max(0, x.position(int(binary.LittleEndian.Uint64(in)))-before[i]))
		memory.Unpack(uintptr(x.buf), in[8:8+valid], before[i])
		if got[i] == before[i]-first[i] {
			got[i] += valid
		}
		in = in[8+n:]
	}
	return nil
}
