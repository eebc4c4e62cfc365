package call

import (
	"slices"
	"testing"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// All that ranks read from where others have stored it, in chunks, is what the collective moves.
func TestTransfersMoveWhatTheModelDoes(t *testing.T) {
	samples(func(s *sample) {
		if s.kind == calls.Barrier || s.kind == calls.Allreduce {
			return
		}
		for _, ordered := range []bool{false, true} {
			got, parts, scratch := map[move]int{}, make([]Transfer, s.p), make([]Scratch, s.p)
			for r, c := range s.calls {
				c.Transfer(&parts[r], r, s.p, ordered, &scratch[r])
			}
			for r := range parts {
				s.read(t, parts, r, got)
			}
			for _, m := range s.moves {
				if got[m]--; got[m] < 0 {
					t.Errorf("%v, %d ranks, root %d: %v is missing", s.kind, s.p, s.root, m)
				}
			}
			for m, n := range got {
				if n > 0 {
					t.Errorf("%v, %d ranks, root %d: %v is too much", s.kind, s.p, s.root, m)
				}
			}
		}
	})
}

// read adds to got what rank r reads from others.
func (s *sample) read(t *testing.T, parts []Transfer, r int, got map[move]int) {
	t.Helper()
	const step = 2 // elements in a chunk
	me := &parts[r]
	if want := s.calls[r].Longest(s.p); want != 0 && me.Longest != want {
		t.Errorf("%s: the longest block has %d elements, want %d", s.on(r), me.Longest, want)
	}
	for i := me.Lo; i < me.Hi; i++ {
		j := me.From(i)
		if reads := &parts[j]; j != r && !reads.Writes || j == r && me.Staged && !me.Writes {
			t.Errorf("%s: reads from rank %d, which stores nothing", s.on(r), j)
		}
		for lo := 0; lo < 8; lo += step {
			src, dst := parts[j].Out(r, lo, step), me.In(j, lo, step)
			if src.Len() != dst.Len() || len(parts[j].OutBytes(r, lo, step)) != src.Size() ||
				len(me.InBytes(j, lo, step)) != dst.Size() {
				t.Fatalf("%s: rank %d has %d elements from %d on where %d are read", s.on(r), j, src.Len(),
					lo, dst.Len())
			}
			if lo == 0 && src.Len() > 0 && index(parts[j].Send, src) != parts[j].Start(r) {
				t.Errorf("%s: the block of rank %d starts at %d", s.on(r), j, parts[j].Start(r))
			}
			for k := range src.Len() {
				got[move{j, index(parts[j].Send, src) + k, r, index(me.Recv, dst) + k}]++
			}
		}
	}
}

// index returns at which element of b its part begins.
func index(b, part mem.Buffer) int { return int(part.Addr()-b.Addr()) / b.Type().Size() }

// Where ranks do not know how long blocks are, what they tell each other says it.
func TestLengthsOfTransfersAgree(t *testing.T) {
	samples(func(s *sample) {
		if !s.kind.LocalCounts() {
			return
		}
		parts, scratch := make([]Transfer, s.p), make([]Scratch, s.p)
		for r, c := range s.calls {
			c.Transfer(&parts[r], r, s.p, false, &scratch[r])
		}
		for r := range parts {
			_, expected, _ := parts[r].Lengths()
			for i, n := range expected {
				sent, _, longest := parts[parts[r].Lo+i].Lengths()
				toReceiver := sent[0]
				if len(sent) > 1 {
					toReceiver = sent[r]
				}
				if want := len(s.received(r, parts[r].Lo+i)); toReceiver != n || n != want ||
					longest != slices.Max(sent) {
					t.Errorf("%s: rank %d sends %d elements, of at most %d, and %d are expected, want %d", s.on(r),
						parts[r].Lo+i, toReceiver, longest, n, want)
				}
				if b := s.calls[r].Block(n); b != (Block{int64(4 * n), mem.I32}) {
					t.Errorf("%s: the word %d is of %v", s.on(r), n, b)
				}
			}
		}
	})
}

// Where each block has a type of its own, ranks tell each other that, too, unless it is empty.
func TestWordsOfBlocksHaveTheirTypes(t *testing.T) {
	all := []mem.Buffer{vec(5), mem.Of(make([]float64, 9)), mem.Of([]int8{}), {}, mem.Of(make([]mem.Float16, 1<<20))}
	want := []Block{{20, mem.I32}, {72, mem.F64}, {}, {}, {2 << 20, mem.F16}}
	var part Transfer
	c := new(Call).Alltoallw(all, all)
	c.Transfer(&part, 0, len(all), false, new(Scratch))
	sent, expected, longest := part.Lengths()
	if longest != 2<<20 || !slices.Equal(sent, expected) {
		t.Errorf("tells %v, of at most %d bytes, and expects %v", sent, longest, expected)
	}
	for i, word := range sent {
		if got := c.Block(word); got != want[i] || got != BlockOf(all[i]) {
			t.Errorf("the word of block %d is of %v, want %v", i, got, want[i])
		}
		if n := part.Out(i, 0, longest).Len(); int64(n) != want[i].Bytes {
			t.Errorf("block %d has %d bytes, want %v", i, n, want[i])
		}
	}
}

// An operand that a result may be stored over before all is combined is staged.
func TestOperandsThatResultsOverwriteAreStaged(t *testing.T) {
	v := vec(8)
	for _, tt := range []struct {
		name string
		recv mem.Buffer
		want bool
	}{
		{"this rank's block", v.Slice(4, 8), false},
		{"another's block", v.Slice(0, 4), false},
		{"across its own", v.Slice(2, 6), true},
		{"apart", vec(4), false},
	} {
		var part Transfer
		new(Call).ReduceScatterBlock(v, tt.recv, sum).Transfer(&part, 1, 2, false, new(Scratch))
		if part.Staged != tt.want {
			t.Errorf("the result in %s: staged is %v", tt.name, part.Staged)
		}
	}
}
