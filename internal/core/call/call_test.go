package call

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

func (s *sample) on(r int) string {
	return fmt.Sprintf("%v of %d ranks, root %d, on rank %d", s.kind, s.p, s.root, r)
}

// set returns the elements of some spans.
func set(spans ...Span) map[int]bool {
	in := map[int]bool{}
	for _, s := range spans {
		for i := s.Lo; i < s.Hi; i++ {
			in[i] = true
		}
	}
	return in
}

func TestRolesAreWhatMoves(t *testing.T) {
	samples(func(s *sample) {
		for r, c := range s.calls {
			send, recv := c.Roles(r)
			out, in := s.sent(r, -1), s.received(r, -1)
			wantSend, wantRecv := calls.Unused, calls.Unused
			switch {
			case s.kind == calls.Bcast && r == s.root:
				wantRecv = calls.Read
			case len(in) == c.Recv.Len() && len(in) > 0:
				wantRecv = calls.Written
			case len(in) > 0:
				wantRecv = calls.Updated
			case s.kind == calls.Exscan:
				wantRecv = calls.Kept
			}
			if s.kind != calls.Bcast && s.kind != calls.Barrier && (len(out) > 0 || s.kind == calls.Exscan) {
				wantSend = calls.Read // exscan's last rank sends to none
			}
			if send != wantSend || recv != wantRecv {
				t.Errorf("%s: roles %d and %d: want %d and %d", s.on(r), send, recv, wantSend, wantRecv)
			}
			if recv.Changes() != (len(in) > 0) {
				t.Errorf("%s: Changes is %v, and %d elements are received", s.on(r), recv.Changes(), len(in))
			}
		}
	})
}

func TestOperandsAreWhatIsSentAndReceived(t *testing.T) {
	samples(func(s *sample) {
		for r, c := range s.calls {
			var from, to mem.Buffer
			if len(s.sent(r, -1)) > 0 || s.kind == calls.Exscan {
				if from = c.Send; s.kind == calls.Bcast {
					from = c.Recv
				}
			}
			if len(s.received(r, -1)) > 0 || s.kind == calls.Exscan {
				to = c.Recv
			}
			if s.kind == calls.Bcast && r == s.root {
				from = c.Recv // also alone
			}
			if gotFrom, gotTo := c.Operands(r); !mem.Same(gotFrom, from) || !mem.Same(gotTo, to) {
				t.Errorf("%s: sends %d and receives %d elements: want %d and %d",
					s.on(r), gotFrom.Len(), gotTo.Len(), from.Len(), to.Len())
			}
		}
	})
}

func TestBlocksCoverWhatMoves(t *testing.T) {
	samples(func(s *sample) {
		for r, c := range s.calls {
			send, recv := c.Blocks(r, s.p)
			if s.kind == calls.Bcast && r == s.root || s.kind == calls.Exscan {
				if recv[0] != (Span{0, perBlock}) {
					t.Errorf("%s: block %v", s.on(r), recv[0])
				}
				continue
			}
			if in := s.received(r, -1); !maps.Equal(set(recv...), in) {
				t.Errorf("%s: blocks of recv %v: want %v", s.on(r), recv, in)
			}
			if out := s.sent(r, -1); s.kind != calls.Bcast && !maps.Equal(set(send...), out) {
				t.Errorf("%s: blocks of send %v: want %v", s.on(r), send, out)
			}
			if n := c.NumBlocks(s.p); len(send)+len(recv) > n && n != 1 {
				t.Errorf("%s: %d and %d blocks, and NumBlocks is %d", s.on(r), len(send), len(recv), n)
			}
		}
	})
}

// What each rank sends to each, and receives from each, is what moves between them.
func TestExchangeIsWhatMoves(t *testing.T) {
	samples(func(s *sample) {
		if s.kind.Reduces() || s.kind == calls.Bcast || s.kind == calls.Barrier {
			return
		}
		for r, c := range s.calls {
			out, in := make([]mem.Buffer, s.p), make([]mem.Buffer, s.p)
			c.Exchange(r, out, in)
			for q := range s.p {
				if want := s.sent(r, q); !maps.Equal(within(out[q], c.Send), want) {
					t.Errorf("%s: sends rank %d %v: want %v", s.on(r), q, within(out[q], c.Send), want)
				}
				if want := s.received(r, q); !maps.Equal(within(in[q], c.Recv), want) {
					t.Errorf("%s: receives from rank %d %v: want %v", s.on(r), q, within(in[q], c.Recv), want)
				}
			}
		}
	})
}

// within returns the elements of all that part is.
func within(part, all mem.Buffer) map[int]bool {
	if part.Len() == 0 {
		return map[int]bool{}
	}
	lo := int(part.Addr()-all.Addr()) / 4
	return set(Span{lo, lo + part.Len()})
}

// The lengths that ranks conclude are those of the blocks that move, and the same on all.
func TestLengthsAreTheSameOnAllRanks(t *testing.T) {
	local := []calls.Kind{calls.Gatherv, calls.Scatterv, calls.Alltoallv}
	samples(func(s *sample) {
		elements, longest := 0, 0 // of the longer vector, without gaps
		for r := range s.p {
			elements = max(elements, len(s.sent(r, -1)), len(s.received(r, -1)))
			for q := range s.p {
				longest = max(longest, len(s.received(r, q)))
			}
		}
		switch {
		case slices.Contains(local, s.kind):
			elements, longest = 0, 0
		case s.p == 1 && (s.kind == calls.Bcast || s.kind == calls.Exscan):
			elements, longest = perBlock, perBlock
		}
		if got := s.kind.LocalCounts(); got != slices.Contains(local, s.kind) {
			t.Errorf("%v: LocalCounts is %v", s.kind, got)
		}
		for r, c := range s.calls {
			if e, l := c.Elements(s.p), c.Longest(s.p); e != elements || l != longest {
				t.Errorf("%s: %d elements, the longest block %d: want %d and %d", s.on(r), e, l, elements, longest)
			}
			if c.Fingerprint != s.calls[0].Fingerprint {
				t.Errorf("%s: %v: want %v as on rank 0", s.on(r), c.Fingerprint, s.calls[0].Fingerprint)
			}
		}
	})
}

func TestWordsCarryFingerprints(t *testing.T) {
	samples(func(s *sample) {
		f := s.calls[0].Fingerprint
		if got := OfWords(f.Words()); got != f || !strings.HasPrefix(f.String(), s.kind.String()+"(") {
			t.Errorf("%v comes as %v", f, got)
		}
		f.Of = 255
		if got := OfWords(f.Words()); got != f || got.String() != f.Of.String()+"()" {
			t.Errorf("%v, a part of a call, comes as %v", f, got)
		}
	})
}

func TestWordsCarryTheSizeOfElements(t *testing.T) {
	b := mem.HostElements(24, 7, make([]byte, 7*24))
	c := new(Call).Reduce(3, b, b, Op{Kind: mem.Custom, Func: func(acc, in mem.Buffer) {}})
	if err := c.Check(0, 4); err != nil {
		t.Fatal(err)
	}
	got := OfWords(c.Words())
	if want := "reduce(7 elements of 24 bytes, custom, root 3)"; got != c.Fingerprint || got.String() != want {
		t.Errorf("%v comes as %v, want %s", c.Fingerprint, got, want)
	}
}

// Where each rank has a part in what each gets, no rank can end before all have begun. Of
// what has counts some may be 0.
func TestNeedsAllIsWhereEveryRankNeedsEveryOther(t *testing.T) {
	for _, k := range []calls.Kind{calls.Dup, calls.Split, calls.Create, calls.Alloc, calls.Free} {
		if f := (Fingerprint{Kind: k}); !f.NeedsAll() {
			t.Errorf("%v does not meet", k)
		}
	}
	samples(func(s *sample) {
		if s.p == 1 {
			return
		}
		want := s.kind == calls.Barrier || s.kind != calls.ReduceScatter && s.kind != calls.Allgatherv &&
			s.kind != calls.Alltoallv
		for r := range s.p {
			for q := range s.p {
				want = want && (s.kind == calls.Barrier || r == q || len(s.received(r, q)) > 0)
			}
		}
		f := s.calls[0].Fingerprint
		some := f.NeedsAll()
		if f.Count = 0; some != want || f.NeedsAll() != (s.kind == calls.Barrier) {
			t.Errorf("%s: meets %v, without elements %v: want %v", s.on(0), some, f.NeedsAll(), want)
		}
	})
}

// A frame may bring any number as a kind.
func TestAnyKindCanBePrinted(t *testing.T) {
	for k := range 256 {
		f := OfWords(uint64(k)|uint64(mem.F32)<<8, 1)
		if f.String() == "" || f.Kind.Reduces() && !calls.Kind(k).Collective() {
			t.Errorf("kind %d: %v", k, f)
		}
	}
}

func TestRulesAreThoseOfEqualBlocks(t *testing.T) {
	names := map[calls.Kind]calls.Kind{calls.ReduceScatterBlock: calls.ReduceScatter, calls.Allgatherv: calls.Allgather,
		calls.Exscan: calls.Scan}
	samples(func(s *sample) {
		want, ok := names[s.kind]
		if !ok {
			want = s.kind
		}
		if got := s.kind.TunedAs(); got != want {
			t.Errorf("%s: rules of %v, want %v", s.on(0), got, want)
		}
	})
}

// A call of parts of all blocks has the Count that a call of such blocks has.
func TestPartsCountAsCallsOfThem(t *testing.T) {
	samples(func(s *sample) {
		c := s.calls[0]
		if s.kind == calls.Barrier || s.kind.LocalCounts() {
			return
		}
		longest := c.Longest(s.p)
		if got := c.PartCount(longest, longest, c.SendCounts, c.RecvCounts); got != c.Count {
			t.Errorf("%s: all of it counts as %d, want %d", s.on(0), got, c.Count)
		}
		want := c.Elements(s.p) / max(longest, 1) // one element of each block
		ones := make([]int, s.p)
		for i := range ones {
			ones[i] = 1
		}
		if s.kind.Counted() {
			want = s.p
		}
		part := Call{Fingerprint: Fingerprint{Kind: s.kind, Count: c.PartCount(1, longest, ones, ones)}}
		if got := part.Elements(s.p); longest > 0 && got != want {
			t.Errorf("%s: an element of each block counts as %d, want %d", s.on(0), got, want)
		}
	})
}
