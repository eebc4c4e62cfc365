package shmsync_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gompi/internal/core/shmsync"
	"gompi/internal/core/shmsync/shmsynctest"
)

// teams returns a Team of all ranks of a new Host, by rank.
func teams(t *testing.T, n int, gate shmsync.Gate, pause func(rank int)) (all []*shmsync.Team, h *shmsynctest.Host) {
	t.Helper()
	h = shmsynctest.NewHost(n, large)
	ts := h.Teams(t, gate, pause)
	for i := range ts {
		all = append(all, &ts[i])
	}
	return all, h
}

// begin begins a collective that nothing tells from others.
func begin(t *shmsync.Team, nth uint64) { t.Begin(&shmsync.EncodedCall{A: nth + 1}, nth, false) }

// Who shuts waits for one that writes to it, until it has or its process is lost.
func TestShutWaitsForWriters(t *testing.T) {
	all, h := teams(t, 3, shmsync.Gate{}, func(int) {})
	asked := 0
	for _, end := range []struct {
		name string
		asks int
		gone func(writer int) bool
	}{
		{"the write is over", 100, func(writer int) bool { all[writer].Written(); return false }},
		{"the writer is lost", 3, func(int) bool { return true }},
	} {
		asked = 0
		h.Gone = func(rank int) bool {
			if asked++; rank != 2 {
				t.Errorf("%s: asks for rank %d, want 2, which writes", end.name, rank)
			}
			return asked == end.asks && end.gone(rank)
		}
		if !all[2].MayWrite(1) {
			t.Fatalf("%s: rank 1 is shut already", end.name)
		}
		if all[1].Shut(); asked != end.asks {
			t.Errorf("%s: Shut asked %d times for the writer, want %d", end.name, asked, end.asks)
		}
		if all[2].MayWrite(1) {
			t.Errorf("%s: rank 2 may write to rank 1, which has shut", end.name)
		}
		all, h = teams(t, 3, shmsync.Gate{}, func(int) {})
	}
}

// A member that comes when another has given up fails, too: what that one has told would do for it.
func TestWhoComesLateFailsLikeWhoGaveUp(t *testing.T) {
	for _, gate := range []shmsync.Gate{{}, {Barriers: true}, {Barriers: true, Steps: true}} {
		all, h := teams(t, 2, gate, func(int) {})
		late, errGaveUp := all[0], errors.New("gave up")
		err := shmsynctest.Together(all, func(m *shmsync.Team) error {
			begin(m, 0)
			if err := m.Barrier(); err != nil {
				return err
			}
			if begin(m, 1); m == late {
				return nil
			}
			s := m.Next(1)
			m.LayInHead(s)
			m.Publish(m.Signed(s), s)
			m.Retract()
			return nil
		})
		if err != nil {
			t.Fatalf("gate %v: %v", gate, err)
		}
		result := make(chan error)
		go func() { result <- late.Barrier() }()
		h.Break(errGaveUp)
		if err := <-result; !errors.Is(err, errGaveUp) {
			t.Errorf("gate %v: the late one gets %v, want %v", gate, err, errGaveUp)
		}
	}
}

// Whatever the timing, all get what all sent, of any length, and no member passes a barrier alone.
func TestStressExchange(t *testing.T) {
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		all, h := teams(t, p, shmsync.Gate{Barriers: round%3 > 0, Steps: round%3 > 1}, pause)
		payload := func(nth uint64, rank, n int) []byte { return bytes.Repeat([]byte{byte(nth) + byte(rank)}, n) }
		return shmsynctest.Together(all, func(m *shmsync.Team) error {
			rng := rand.New(rand.NewPCG(round, 99)) // the same on all
			for nth := range uint64(200) {
				begin(m, nth)
				if rng.IntN(3) == 0 {
					if err := m.Barrier(); err != nil {
						return h.Break(err)
					}
				}
				n := rng.IntN(1 << rng.IntN(14))
				s, err := m.Exchange(payload(nth, m.Me(), n), true)
				if err != nil {
					return h.Break(err)
				}
				pause(m.Me())
				for j := range p {
					if got := m.Payload(j, s, 0, n); !bytes.Equal(got, payload(nth, j, n)) {
						return h.Break(fmt.Errorf("exchange %d of %d bytes: another word of member %d", nth, n, j))
					}
				}
			}
			return nil
		})
	})
}

// A member that fills steps and reads none fills no place that another still reads, wherever
// payloads lie.
func TestStressOneWriter(t *testing.T) {
	shmsynctest.Stress(t, func(round uint64, p int, pause func(rank int)) error {
		all, h := teams(t, p, shmsync.Gate{}, pause)
		return shmsynctest.Together(all, func(m *shmsync.Team) error {
			rng := rand.New(rand.NewPCG(round, 98)) // the same on all
			for nth := range uint64(1000) {
				n, long := 1+rng.IntN(1<<rng.IntN(15)), rng.IntN(2) == 0
				begin(m, nth)
				s := m.Next(1)
				m.Lay(s, n, long, true)
				if err := stream(m, s, n, byte(nth), pause); err != nil {
					return h.Break(fmt.Errorf("step %d of %d bytes: %w", s, n, err))
				}
				m.Consumed(s)
			}
			return nil
		})
	})
}

// stream has member 0 fill n bytes of step s with v, and the others read them.
func stream(m *shmsync.Team, s uint64, n int, v byte, pause func(rank int)) error {
	want := bytes.Repeat([]byte{v}, n)
	if m.Me() == 0 {
		head, err := m.Acquire(s, true)
		if err == nil {
			copy(m.Payload(0, s, 0, n), want)
			m.Publish(head, s)
		}
		return err
	}
	if err := m.AwaitCall(0, s); err != nil {
		return err
	}
	pause(m.Me())
	if !bytes.Equal(m.Payload(0, s, 0, n), want) {
		return errors.New("another payload")
	}
	return nil
}

// Members that disagree are told so also while another has not come.
func TestLengthsAreAgreedOn(t *testing.T) {
	const p = 3
	sent := func(from, to int) int { return 10*from + to }
	for _, tt := range []struct{ more, members int }{{0, p}, {1, p}, {1, p - 1}} {
		all, _ := teams(t, p, shmsync.Gate{}, func(int) {})
		err := shmsynctest.Together(all[:tt.members], func(m *shmsync.Team) error {
			begin(m, 0)
			var out, in []int
			for j := range p {
				out, in = append(out, sent(m.Me(), j)), append(in, sent(j, m.Me()))
			}
			if m.Me() == 1 {
				in[0] += tt.more
			}
			longest, err := m.AgreeLengths(out, in, slices.Max(out), 0)
			if err == nil && longest != sent(p-1, p-1) {
				err = fmt.Errorf("the longest has %d elements", longest)
			}
			return err
		})
		if tt.more == 0 && err != nil || tt.more > 0 && !errors.Is(err, shmsynctest.ErrDisagree) {
			t.Errorf("%d of %d members, one of which expects %d more: %v", tt.members, p, tt.more, err)
		}
	}
}

// A length for all is compared by those who expect it, from there on; others tell nothing.
func TestOneLengthIsForAll(t *testing.T) {
	for _, wrong := range []int{0, 1} {
		all, _ := teams(t, 3, shmsync.Gate{}, func(int) {})
		err := shmsynctest.Together(all, func(m *shmsync.Team) error {
			begin(m, 0)
			var sent, expected []int
			length := 0
			if m.Me() == 2 {
				sent, length = []int{7}, 7
			} else {
				expected = []int{7 + wrong}
			}
			longest, err := m.AgreeLengths(sent, expected, length, 2)
			if err == nil && longest != 7 {
				err = fmt.Errorf("the longest has %d elements", longest)
			}
			return err
		})
		if wrong == 0 && err != nil || wrong == 1 && !errors.Is(err, shmsynctest.ErrDisagree) {
			t.Errorf("where %d more are expected: %v", wrong, err)
		}
	}
}

// Where one member gets no memory for its large buffer, no member uses any.
func TestLargeBuffersAreForAllMembersOrNone(t *testing.T) {
	for poor := range int64(3) {
		all, h := teams(t, 2, shmsync.Gate{}, func(int) {})
		h.Poor.Store(poor)
		err := shmsynctest.Together(all, func(m *shmsync.Team) error {
			begin(m, 0)
			for _, compared := range []bool{false, true} {
				has, err := m.HasLarge(&compared)
				if err != nil || has != (poor == 0) || !compared {
					return fmt.Errorf("%v, %v, calls compared: %v", has, err, compared)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("without memory on rank %d: %v", poor-1, err)
		}
	}
}
