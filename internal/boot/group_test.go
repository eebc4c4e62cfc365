package boot

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

func TestGroupAllgatherGivesEveryMemberEveryCard(t *testing.T) {
	for _, n := range []int{1, 2, 5, 4096} {
		synctest.Test(t, func(t *testing.T) {
			boots := Group(n)
			var wg sync.WaitGroup
			for i, b := range boots {
				wg.Go(func() {
					cards, err := b.Allgather(t.Context(), fmt.Appendf(nil, "card %d", i))
					if err != nil || len(cards) != n {
						t.Errorf("rank %d of %d: %d cards, %v", i, n, len(cards), err)
						return
					}
					for _, j := range []int{0, i, n - 1} {
						if want := fmt.Sprintf("card %d", j); string(cards[j]) != want {
							t.Errorf("rank %d has card %q from rank %d, want %q", i, cards[j], j, want)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestGroupAllgatherFailsWhenARankCannotContribute(t *testing.T) {
	tests := []struct {
		name string
		end  func(*Member)
		want string
	}{
		{"died", func(m *Member) { m.Die("killed") }, "rank 1 died: killed"},
		{"left", func(m *Member) { m.Goodbye(false) }, "rank 1 left"},
		{"aborted", func(m *Member) { m.Abort(3, "no disk") }, "rank 1 aborted the job with status 3: no disk"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			boots := Group(3)
			errs := make(chan error, 2)
			for _, i := range []int{0, 2} {
				go func() {
					_, err := boots[i].Allgather(t.Context(), nil)
					errs <- err
				}()
			}
			synctest.Wait()
			tt.end(boots[1].(*Member))
			for range 2 {
				if err := <-errs; err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
				}
			}
		})
	}
}

func TestGroupAllgatherEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(why)
		if _, err := Group(2)[0].Allgather(ctx, nil); err != why {
			t.Errorf("error %v, want %v", err, why)
		}
	})
}

func TestGroupNewsReachesEveryMemberOnceAndInOrder(t *testing.T) {
	boots := Group(3)
	woken := make([]int, 3)
	for i, b := range boots {
		b.SetWake(func() { woken[i]++ })
	}
	cause := []byte("because")
	boots[2].Revoke(7, cause)
	cause[0] = 'x'
	boots[1].(*Member).Die("killed")
	boots[1].(*Member).Die("twice")
	for i, b := range boots {
		if woken[i] != 2 || !b.Pending() {
			t.Errorf("rank %d: woken %d times, pending %v; want 2, true", i, woken[i], b.Pending())
		}
		want := []Event{{Kind: Revoked, Rank: 2, Comm: 7, Text: []byte("because")},
			{Kind: Died, Rank: 1, Text: []byte("killed")}}
		if got := b.Events(); !reflect.DeepEqual(got, want) {
			t.Errorf("rank %d: events %v, want %v", i, got, want)
		}
		if b.Pending() || b.Events() != nil {
			t.Errorf("rank %d: news again after Events", i)
		}
	}
}

// Whoever has told that a communicator is broken may end at once, and then all others can
// know why, also if another rank told it first.
func TestGroupRevocationIsThereWhenRevokeReturns(t *testing.T) {
	for range 20_000 {
		boots := Group(3)
		var tellers sync.WaitGroup
		for _, b := range boots[:2] {
			tellers.Go(func() {
				b.Revoke(7, []byte("why"))
				if !boots[2].Pending() {
					t.Error("the third rank has no news of the revocation")
				}
			})
		}
		tellers.Wait()
	}
}

func TestGroupMemberThatSaidGoodbyeCannotDie(t *testing.T) {
	boots := Group(2)
	boots[0].Goodbye(false)
	boots[0].(*Member).Die("exit")
	if boots[1].Pending() {
		t.Errorf("events %v after a goodbye, want none", boots[1].Events())
	}
}

func TestGroupMemberThatLeftIsReportedWhenAnotherInquires(t *testing.T) {
	boots := Group(3)
	boots[0].Inquire(1)
	boots[1].Goodbye(false)
	boots[2].Goodbye(false)
	if boots[0].Inquire(2); !boots[0].Pending() {
		t.Fatal("no news")
	}
	want := []Event{{Kind: Left, Rank: 1}, {Kind: Left, Rank: 2}}
	if got := boots[0].Events(); !slices.EqualFunc(got, want,
		func(a, b Event) bool { return a.Kind == b.Kind && a.Rank == b.Rank }) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// The outcome comes behind the news of all deaths that it leaves out.
func TestGroupMembersThatLiveAgree(t *testing.T) {
	boots := Group(4)
	vote := &wire.Vote{Comm: 5, Seq: 1, Kind: wire.Shrink, Members: wire.Spans([]world.Rank{0, 1, 2, 3})}
	for _, r := range []int{0, 3} {
		if err := boots[r].Vote(vote); err != nil {
			t.Fatal(err)
		}
	}
	boots[1].Goodbye(false)
	if boots[0].Pending() {
		t.Fatalf("news %v before rank 2 has voted or ended", boots[0].Events())
	}
	boots[2].(*Member).Die("killed")
	got := boots[0].Events()
	if len(got) != 2 || got[0].Kind != Died || got[1].Kind != Agreed {
		t.Fatalf("events %v, want a death and an outcome", got)
	}
	o := got[1].Outcome
	if len(o.Living) != 2 || o.Living[0].Rank != 0 || o.Living[1].Rank != 3 || !slices.Equal(o.Dead, []world.Rank{2}) {
		t.Errorf("outcome %+v, want that 0 and 3 live and 2 is dead", o)
	}
}

func TestAloneIsAJobOfOne(t *testing.T) {
	b := Alone()
	in := b.Info()
	if in.Rank != 0 || in.Size != 1 || in.LocalSize != 1 || in.Nodes != 1 || in.Host(0) == "" || in.Flight() != nil {
		t.Errorf("info %+v, want rank 0 of 1 on a named host, without flight recorder", in)
	}
	cards, err := b.Allgather(t.Context(), []byte("me"))
	if err != nil || len(cards) != 1 || string(cards[0]) != "me" {
		t.Errorf("allgather = %q, %v", cards, err)
	}
}
