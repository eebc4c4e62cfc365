package tcp

import (
	"testing"

	"gompi/internal/poll"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// secret is the job's in all tests.
var secret = [32]byte{1, 2, 3}

// start makes the transport of a rank.
func start(t testing.TB, cfg Config, sink transport.Sink) (*Transport, *poll.Set) {
	t.Helper()
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.JobID, cfg.Secret = "job", secret
	tr, err := New(cfg, sink, set)
	if err != nil {
		set.Close()
		t.Fatal(err)
	}
	return tr, set
}

func sameHost(int) bool { return true }

// openNet makes a Net whose ranks are all on this host.
func openNet(t *testing.T, sinks []transport.Sink) *transporttest.Net {
	n := &transporttest.Net{}
	var transports []*Transport
	var sets []*poll.Set
	var cards [][]byte
	for i, s := range sinks {
		tr, set := start(t, Config{Rank: i, Size: len(sinks), SameHost: sameHost}, s)
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
	n.Kill = func(rank int) { transports[rank].die() }
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
