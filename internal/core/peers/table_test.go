package peers

import (
	"testing"

	"gompi/internal/mem"
	"gompi/internal/world"
	"gompi/transport"
)

// A fake transport reaches some ranks, and counts its polls.
type fake struct {
	transport.Transport
	name    string
	reaches func(world.Rank) bool
	polls   int
	sent    []transport.Header
}

func (f *fake) Name() string                                { return f.name }
func (f *fake) Capabilities() (none transport.Capabilities) { return none }
func (f *fake) Reaches(rank world.Rank) bool                { return f.reaches(rank) }
func (f *fake) Poll(world.Rank) int                         { f.polls++; return 1 }
func (f *fake) Send(_ world.Rank, h *transport.Header, _ mem.Buffer, _ uint64) bool {
	f.sent = append(f.sent, *h)
	return true
}

// even reaches even ranks, all reaches every rank; even is preferred.
func pair(size int) (t *Table, even, all *fake) {
	even = &fake{name: "even", reaches: func(r world.Rank) bool { return r%2 == 0 }}
	all = &fake{name: "all", reaches: func(world.Rank) bool { return true }}
	t = new(Table)
	t.Init(size)
	t.Use(even)
	t.Use(all)
	return t, even, all
}

func TestFramesGoOverTheFirstTransportThatReaches(t *testing.T) {
	tab, even, all := pair(200)
	for _, rank := range []world.Rank{0, 1, 64, 199} {
		p := tab.Peer(rank)
		p.Post(p.Frame(transport.Header{Kind: transport.Data, A: uint64(rank)}), mem.Bytes(make([]byte, 10)), 0)
	}
	if len(even.sent) != 2 || len(all.sent) != 2 || even.sent[1].A != 64 || all.sent[1].A != 199 {
		t.Errorf("sent %v and %v: want ranks 0 and 64 by the first, 1 and 199 by the second", even.sent, all.sent)
	}
	want := Carried{Messages: 2, Bytes: 20}
	if c := tab.Carried(); len(c) != 2 || c["even"] != want || c["all"] != want {
		t.Errorf("carried %v: want %v each", c, want)
	}
}

func TestAnAwaitedPeersTransportIsPolledMostly(t *testing.T) {
	tab, even, all := pair(4)
	for range 10 * othersEvery {
		tab.Poll(2)
	}
	if even.polls != 10*othersEvery || all.polls != 10 {
		t.Errorf("polled %d and %d times: want %d and 10", even.polls, all.polls, 10*othersEvery)
	}
	tab.Poll(world.None)
	if all.polls != 11 {
		t.Errorf("a poll for any rank left a transport out")
	}
}

func TestAPeerReturnsNoMoreCreditThanWasSpent(t *testing.T) {
	var c Credit
	c.Spend(Cost(100))
	if c.Regain(1 << 40); !c.Covers(Budget, Budget) || c.Covers(Budget+1, Budget) {
		t.Errorf("credit is %+v after more came back than was spent: want all of it", c)
	}
	if c.Owe(3); c.Owe(4) != 7 || c.Return() != 7 || c.Return() != 0 {
		t.Errorf("credit owed is %+v: want it returned once", c)
	}
}
