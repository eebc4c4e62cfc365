package tcp

import (
	"errors"
	"os"
	"testing"
	"time"

	"gompi/internal/mem"
	"gompi/internal/poll"
	"gompi/internal/stress"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// secret is the job's in all tests.
var secret = [32]byte{1, 2, 3}

// timeout bounds every wait for a certain event.
const timeout = time.Minute

// start makes the transport of a rank.
func start(t testing.TB, cfg Config, sink transport.Sink) (*Transport, *poll.Set) {
	t.Helper()
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.JobID = "job"
	if cfg.Secret == [32]byte{} {
		cfg.Secret = secret
	}
	tr, err := New(cfg, sink, set)
	if err != nil {
		set.Close()
		t.Fatal(err)
	}
	return tr, set
}

func sameHost(world.Rank) bool { return true }

// openNet makes a Net whose ranks are all on this host.
func openNet(t *testing.T, sinks []transport.Sink) *transporttest.Net {
	return openNetWith(t, sinks, false)
}

func openNetWith(t *testing.T, sinks []transport.Sink, macs bool) *transporttest.Net {
	n := &transporttest.Net{}
	var transports []*Transport
	var sets []*poll.Set
	var cards [][]byte
	for i, s := range sinks {
		tr, set := start(t, Config{Rank: world.Rank(i), Size: len(sinks), SameHost: sameHost, FrameMAC: macs}, s)
		transports = append(transports, tr)
		sets = append(sets, set)
		cards = append(cards, tr.Card())
		n.Ends = append(n.Ends, transporttest.End{Transport: tr, Parker: set})
	}
	for _, tr := range transports {
		if err := tr.SetCards(cards); err != nil {
			t.Fatal(err)
		}
	}
	n.Kill = func(rank world.Rank) { transports[rank].die() }
	n.Done = func() {
		for _, s := range sets {
			s.Close()
		}
	}
	return n
}

// die closes everything without a word, as the system does for a process that
// was killed.
func (t *Transport) die() { t.release() }

func TestConformance(t *testing.T) { transporttest.Run(t, openNet) }

// Transports with MACs on frames conform, too.
func TestStressConformanceWithMACs(t *testing.T) {
	stress.Nightly(t, "it takes 20 s")
	transporttest.Run(t, func(t *testing.T, sinks []transport.Sink) *transporttest.Net {
		return openNetWith(t, sinks, true)
	})
}

func TestFaulty(t *testing.T) { transporttest.RunFaulty(t, openNet) }

// A rank is a transport and the sink it delivers to, for tests that look
// inside. One goroutine drives all ranks of a test, in an order it knows.
type rank struct {
	*Transport
	got  []string // payloads, by arrival
	from []world.Rank
	in   map[uint64]*[]byte
	lost map[world.Rank]error
}

func (r *rank) Arrive(peer world.Rank, h *transport.Header) (mem.Buffer, uint64) {
	b := make([]byte, h.Len)
	token := uint64(len(r.got))
	r.got, r.from = append(r.got, ""), append(r.from, peer)
	r.in[token] = &b
	return mem.Bytes(b), token
}

func (r *rank) Filled(token uint64) mem.Buffer {
	r.got[token] = string(*r.in[token])
	return mem.Buffer{}
}

func (r *rank) Sent(uint64, error)              {}
func (r *rank) Lost(peer world.Rank, err error) { r.lost[peer] = err }

// sendText sends a payload.
func (r *rank) sendText(peer world.Rank, payload string) {
	r.Send(peer, &transport.Header{Kind: transport.Eager}, mem.Bytes([]byte(payload)), 0)
}

// startAll starts size ranks with cfg, which change may adapt.
func startAll(t testing.TB, size int, change func(cfg *Config)) []*rank {
	t.Helper()
	ranks := make([]*rank, size)
	cards := make([][]byte, size)
	for i := range ranks {
		r := &rank{in: make(map[uint64]*[]byte), lost: make(map[world.Rank]error)}
		cfg := Config{Rank: world.Rank(i), Size: size, SameHost: sameHost}
		if change != nil {
			change(&cfg)
		}
		tr, set := start(t, cfg, r)
		r.Transport = tr
		ranks[i], cards[i] = r, tr.Card()
		t.Cleanup(func() { tr.Close(true); set.Close() })
	}
	for _, r := range ranks {
		if err := r.SetCards(cards); err != nil {
			t.Fatal(err)
		}
	}
	return ranks
}

// until polls all ranks in turn until done reports true. Pauses between the rounds of
// a call take no time.
func until(t testing.TB, ranks []*rank, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !done(); {
		for _, r := range ranks {
			r.Poll(-1)
			for _, p := range r.peers {
				if p != nil && p.call != nil && p.call.sock == nil {
					r.clock.now = max(r.clock.now, p.call.due)
				}
			}
		}
		if time.Now().After(end) {
			for _, r := range ranks {
				t.Logf("rank %d: got %d messages, lost %v", r.cfg.Rank, len(r.got), r.lost)
			}
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// pass lets time go by for r, as its clock counts it.
func (r *rank) pass(d time.Duration) {
	r.clock.now += int64(d)
	r.Poll(-1)
}

func TestEventsOfOthersAreHandedOn(t *testing.T) {
	var keys []uint64
	ranks := startAll(t, 1, func(cfg *Config) { cfg.Foreign = func(key uint64) { keys = append(keys, key) } })
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := ranks[0].set.Add(int(r.Fd()), 42, poll.Read); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < listenEvery && len(keys) == 0; i++ {
		ranks[0].Poll(-1)
	}
	if len(keys) != 1 || keys[0] != 42 {
		t.Errorf("foreign events %v, want one of key 42", keys)
	}
	if err := ranks[0].set.Del(int(r.Fd())); err != nil {
		t.Fatal(err)
	}
}

func TestAwaitedPeerDoesNotStarveOthers(t *testing.T) {
	ranks := startAll(t, 3, nil)
	ranks[1].sendText(0, "a")
	ranks[2].sendText(0, "b")
	until(t, ranks, "contact", func() bool { return len(ranks[0].got) == 2 })
	ranks[2].sendText(0, "c")
	for range lookEvery {
		ranks[0].Poll(1)
	}
	if len(ranks[0].got) != 3 {
		t.Errorf("rank 0 polled rank 1 %d times and did not see what rank 2 sent", lookEvery)
	}
}

func TestPendingUntilCopiedFramesHaveLeft(t *testing.T) {
	ranks := startAll(t, 2, nil)
	if ranks[0].Pending() {
		t.Error("pending without anything sent")
	}
	ranks[0].sendText(1, "x")
	if !ranks[0].Pending() {
		t.Error("not pending, although a frame waits for its connection")
	}
	until(t, ranks, "the frame", func() bool { return len(ranks[1].got) == 1 })
	if ranks[0].Pending() {
		t.Error("still pending after delivery")
	}
}

func TestConfigIsChecked(t *testing.T) {
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, cfg := range []Config{
		{Rank: 0, Size: 0},
		{Rank: 2, Size: 2},
		{Rank: -1, Size: 2},
		{Rank: 0, Size: 1, PortLow: -1},
		{Rank: 0, Size: 1, PortLow: 70000},
		{Rank: 0, Size: 1, PortHigh: 5},
		{Rank: 0, Size: 2, Interfaces: "10.0.0.0/33"},
	} {
		if tr, err := New(cfg, &counter{}, set); err == nil {
			tr.Close(true)
			t.Errorf("New(%+v) succeeded", cfg)
		}
	}
}

func TestPortRange(t *testing.T) {
	// Find three ports in a row that are free.
	probe := startAll(t, 1, nil)[0]
	low := int(probe.card.port)
	ranged := func(cfg *Config) { cfg.PortLow, cfg.PortHigh = low, low+2 }
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var open []*Transport
	for {
		cfg := Config{Rank: 0, Size: 1, SameHost: sameHost}
		ranged(&cfg)
		tr, err := New(cfg, &counter{}, set)
		if err != nil {
			if len(open) == 0 {
				t.Skipf("no free port near %d", low)
			}
			if want := "no free port to listen on in"; len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
				t.Errorf("range used up: %v, want %q", err, want)
			}
			break
		}
		if p := int(tr.card.port); p <= low || p > low+2 {
			t.Errorf("port %d, want %d or %d", p, low+1, low+2)
		}
		// One set can watch one listener; this test needs no events.
		open = append(open, tr)
	}
	for _, tr := range open {
		tr.Close(true)
	}
}

func TestCopiesForASlowPeerAreBounded(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "x")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	copied := 0
	for ranks[0].Send(1, &transport.Header{Kind: transport.Eager}, memory(50_000), 0) {
		if copied += 50_000; copied > 64<<20 {
			t.Fatal("64 MiB were taken for a rank that does not poll")
		}
	}
	if held := ranks[0].peers[1].out.copied; held > heldLimit+copyLimit {
		t.Errorf("%d bytes held, want at most %d", held, heldLimit)
	}
}

// Frames on their way when a rank closes arrive, even if its peer continues sending to it
// meanwhile.
func TestCloseWaitsForDelivery(t *testing.T) {
	ranks := startAll(t, 2, nil)
	ranks[0].sendText(1, "x")
	until(t, ranks, "contact", func() bool { return len(ranks[1].got) == 1 })
	const frames = 40
	for range frames {
		ranks[0].sendText(1, string(make([]byte, 40_000)))
	}
	for range 10 {
		ranks[0].Close(false)
	}
	for range 10 {
		ranks[1].sendText(0, "do you still listen?")
		ranks[0].Close(false)
	}
	for ranks[1].lost[0] == nil {
		ranks[1].Poll(0)
		ranks[0].Close(false)
	}
	if err := ranks[1].lost[0]; !errors.Is(err, transport.ErrGone) || len(ranks[1].got) != 1+frames {
		t.Errorf("%d frames arrived, lost with %v; want %d and %v", len(ranks[1].got), err, 1+frames, transport.ErrGone)
	}
}

func TestEventsOfClosedConnectionsMeanNothing(t *testing.T) {
	ranks := startAll(t, 1, nil)
	r := ranks[0]
	dialRaw(t, r)
	until(t, ranks, "a connection", func() bool { return len(r.pending) == 1 })
	old := r.pending[0]
	r.reject(old, errors.New("test"))
	dialRaw(t, r)
	until(t, ranks, "another connection", func() bool { return len(r.pending) == 1 })
	if r.pending[0].slot != old.slot {
		t.Fatalf("slot %d, want %d again", r.pending[0].slot, old.slot)
	}
	if n := r.handle(poll.Event{Key: old.key, Ready: poll.Read}); n != 0 {
		t.Error("an event of a closed connection was taken for its successor's")
	}
}

func TestNoDescriptorIsLeft(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		t.Run("", func(t *testing.T) {
			ranks := startAll(t, 3, nil)
			for _, r := range ranks {
				r.sendText((r.cfg.Rank+1)%3, "x")
				dialRaw(t, r)
			}
			until(t, ranks, "a frame each", func() bool {
				return len(ranks[0].got)+len(ranks[1].got)+len(ranks[2].got) == 3
			})
		})
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

func memory(n int) mem.Buffer { return mem.Bytes(make([]byte, n)) }
