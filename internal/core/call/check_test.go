package call

import (
	"fmt"
	"slices"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// both reports whether send and recv both mean something on a rank, as MPI says.
func (s *sample) both(r int) bool {
	switch s.kind {
	case calls.Barrier, calls.Bcast:
		return false
	case calls.Reduce, calls.Gather, calls.Gatherv, calls.Scatter, calls.Scatterv:
		return r == s.root
	}
	return true
}

func TestCheckAcceptsWhatIsRight(t *testing.T) {
	samples(func(s *sample) {
		for r, c := range s.calls {
			if err := c.Check(r, s.p); err != nil {
				t.Errorf("%s: %v", s.on(r), err)
			}
		}
	})
}

// One thing is wrong at a time. It is found where the arguments mean something, and only
// there.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	gaps := map[calls.Kind][2]bool{calls.Allgatherv: {false, true}, calls.Gatherv: {false, true},
		calls.Scatterv: {true, false}, calls.Alltoallv: {true, true}}
	reduces := []calls.Kind{calls.Reduce, calls.Allreduce, calls.ReduceScatter, calls.ReduceScatterBlock, calls.Scan,
		calls.Exscan}
	faults := []struct {
		what  string
		make  func(c *Call)
		found func(s *sample, r int) bool
	}{
		{"send is longer", func(c *Call) { c.Send = vec(c.Send.Len() + 1) },
			func(s *sample, r int) bool { return s.both(r) && !gaps[s.kind][0] }},
		{"recv is longer", func(c *Call) { c.Recv = vec(c.Recv.Len() + 1) },
			func(s *sample, r int) bool { return s.both(r) && !gaps[s.kind][1] }},
		{"send is shorter", func(c *Call) { c.Send = c.Send.Slice(0, max(c.Send.Len()-1, 0)) }, (*sample).both},
		{"recv is shorter", func(c *Call) { c.Recv = c.Recv.Slice(0, max(c.Recv.Len()-1, 0)) }, (*sample).both},
		{"recv has another type", func(c *Call) { c.Recv = mem.Of(make([]float32, c.Recv.Len())) }, (*sample).both},
		{"no ranks before the root", func(c *Call) { c.Root = -1 }, func(*sample, int) bool { return true }},
		{"no such root", func(c *Call) { c.Root = 1 << 32 }, func(*sample, int) bool { return true }},
		{"no operator", func(c *Call) { c.Op = Op{} },
			func(s *sample, r int) bool { return slices.Contains(reduces, s.kind) }},
		{"no function", func(c *Call) { c.Op = Op{Kind: mem.Custom} },
			func(s *sample, r int) bool { return slices.Contains(reduces, s.kind) }},
	}
	for _, f := range faults {
		samples(func(s *sample) {
			for r, c := range s.calls {
				f.make(c)
				if err := c.Check(r, s.p); (err != nil) != f.found(s, r) {
					t.Errorf("%s, where %s: %v", s.on(r), f.what, err)
				}
			}
		})
	}
}

func TestCheckFindsWrongCounts(t *testing.T) {
	samples(func(s *sample) {
		for r := range s.p {
			if !s.both(r) {
				continue
			}
			for i := range 6 {
				c := newSample(s.kind, s.p, s.root).calls[r]
				of := []*[]int{&c.SendCounts, &c.RecvCounts, &c.SendDispls, &c.RecvDispls}[i%4]
				if *of == nil {
					continue
				}
				if *of = slices.Clone(*of); i < 4 {
					(*of)[s.p-1] += 1000
				} else {
					*of = append(*of, 0)
				}
				if c.Check(r, s.p) == nil {
					t.Errorf("%s: wrong counts (%d) are allowed", s.on(r), i)
				}
			}
		}
	})
}

// inPlace returns where the shorter of send and recv may lie in the longer, as comm
// promises.
func (s *sample) inPlace(r int) []int {
	c := s.calls[r]
	switch s.kind {
	case calls.Allgather, calls.Gather:
		return []int{r * perBlock}
	case calls.Allgatherv, calls.Gatherv:
		return []int{c.RecvDispls[r]}
	case calls.Scatter:
		return []int{r * perBlock}
	case calls.Scatterv:
		return []int{c.SendDispls[r]}
	case calls.ReduceScatterBlock:
		return []int{0, r * perBlock}
	case calls.ReduceScatter:
		at := 0
		for _, n := range c.SendCounts[:r] {
			at += n
		}
		return []int{0, at}
	}
	return []int{0}
}

// send and recv lie in one array, the longer at its middle, the shorter everywhere.
func TestOverlapsAreThoseInPlace(t *testing.T) {
	samples(func(s *sample) {
		for r, c := range s.calls {
			long, short := &c.Send, &c.Recv
			if long.Len() < short.Len() {
				long, short = short, long
			}
			if s.kind == calls.Alltoallv && s.p > 1 {
				continue // its two vectors differ: see below
			}
			n, m := long.Len(), short.Len()
			array := vec(m + n + m)
			*long = array.Slice(m, m+n)
			for i := -m; i <= n; i++ {
				*short = array.Slice(m+i, m+i+m)
				apart := i == -m || i == n
				want := apart || !s.both(r) || slices.Contains(s.inPlace(r), i)
				if err := c.Check(r, s.p); (err == nil) != want {
					t.Errorf("%s: the shorter begins at element %d of the longer: %v", s.on(r), i, err)
				}
				if want && s.both(r) {
					s.checkOverwrites(t, r, apart)
				}
			}
		}
	})
}

// checkOverwrites looks whether what a rank receives is stored where what it sends to others
// lies, if it sends each a block.
func (s *sample) checkOverwrites(t *testing.T, r int, apart bool) {
	t.Helper()
	c, want := s.calls[r], false
	if slices.Contains([]calls.Kind{calls.ReduceScatter, calls.ReduceScatterBlock, calls.Scatter, calls.Scatterv,
		calls.Alltoall}, s.kind) {
		shift := (int(c.Recv.Addr()) - int(c.Send.Addr())) / 4
		for to := range s.p {
			for i := range s.sent(r, to) {
				want = want || to != r && !apart && s.received(r, -1)[i-shift]
			}
		}
	}
	if got := c.Overwrites(r, s.p); got != want && s.p > 1 {
		t.Errorf("%s: Overwrites is %v", s.on(r), got)
	}
}

func TestAlltoallvInPlaceHasOneLayout(t *testing.T) {
	all := vec(6)
	counts, displs := []int{2, 2}, []int{0, 3}
	c := new(Call).Alltoallv(all, counts, displs, all, counts, displs)
	if err := c.Check(0, 2); err != nil || !c.Overwrites(0, 2) {
		t.Errorf("in place: %v", err)
	}
	some := []int{6, 0}
	if err := new(Call).Alltoallv(all, some, []int{0, 1}, all, some, []int{0, -9}).Check(0, 2); err != nil {
		t.Errorf("in place with other displacements of an empty block: %v", err)
	}
	for what, other := range map[string][2][]int{"counts": {{2, 1}, displs}, "displacements": {counts, {0, 4}}} {
		if new(Call).Alltoallv(all, counts, displs, all, other[0], other[1]).Check(0, 2) == nil {
			t.Errorf("in place with other %s is allowed", what)
		}
	}
}

func TestErrorsQuoteWhatIsWrong(t *testing.T) {
	four := vec(4)
	for _, x := range []struct {
		c    *Call
		want string
	}{
		{new(Call).Bcast(3, four), "root 3: want 0 to 1"},
		{new(Call).Allreduce(four, vec(3), sum), "recv has 3 elements: want 4 (send)"},
		{new(Call).Allreduce(four, vec(4), Op{Kind: mem.MinLoc}), "operator minloc is not defined for int32"},
		{new(Call).Allreduce(four, vec(4), Op{Kind: mem.Avg}),
			"operator avg is not defined for int32, of which the sum may wrap: want floating-point numbers, or a sum in a wider type"},
		{new(Call).Allgather(four, vec(9)), "recv has 9 elements: want 8 (ranks x send)"},
		{new(Call).ReduceScatterBlock(vec(9), four, sum), "send has 9 elements: want 8 (ranks x recv)"},
		{new(Call).ReduceScatter(vec(5), vec(2), []int{2, 2}, sum), "send has 5 elements: want 4 (sum of counts)"},
		{new(Call).Alltoall(vec(5), vec(5)), "send has 5 elements: want a multiple of the 2 ranks"},
		{new(Call).Scatterv(0, four, vec(3), []int{2, 2}, nil), "recv has 3 elements: want 2 (counts[rank])"},
		{new(Call).Gatherv(0, vec(2), four, []int{2}, nil),
			"1 counts and 0 displacements for recv: want 2, displacements may be nil"},
		{new(Call).Gatherv(0, vec(2), four, []int{2, 3}, nil),
			"block 1 of recv has 3 elements from 2 on: want it inside the 4 there are"},
		{new(Call).Alltoallv(four, []int{2, 2}, nil, four, []int{1, 2}, nil),
			"counts[rank] has 1 elements: want 2 (sendCounts[rank])"},
		{new(Call).Gatherv(0, mem.HostBytes(mem.F64, 0, nil), four, []int{0, 4}, nil),
			"send has float64 elements and recv int32: want one type"},
		{new(Call).Scatterv(0, four, mem.HostBytes(mem.F64, 0, nil), []int{0, 4}, nil),
			"send has int32 elements and recv float64: want one type"},
		{new(Call).Allreduce(four, four.Slice(1, 4), sum), "recv has 3 elements: want 4 (send)"},
		{new(Call).Allgather(four.Slice(1, 3), four),
			"send and recv overlap: want send to be this rank's block of recv, or apart from it"},
		{new(Call).Scatter(0, four, four.Slice(1, 3)),
			"send and recv overlap: want recv to be this rank's block of send, or apart from it"},
	} {
		if err := x.c.Check(0, 2); fmt.Sprint(err) != x.want {
			t.Errorf("%v: %v: want %s", x.c.Fingerprint, err, x.want)
		}
	}
}
