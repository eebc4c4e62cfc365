package ucx

import (
	"log/slog"
	"testing"

	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/transporttest"
)

var secret = [32]byte{1, 2, 3}

// start makes the transport of a rank, over UCX's transports.
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
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	tr, err := New(cfg, sink, set)
	if err != nil {
		set.Close()
		t.Skipf("left out: %v (Debian has UCX as libucx0; it takes CGO_ENABLED=1)", err)
	}
	return tr, set
}

// over opens Nets over some of UCX's transports. tells says that these notice when a process
// ends; else the launcher has to.
func over(transports string, noticesEnds bool) transporttest.Open {
	return func(t *testing.T, sinks []transport.Sink) *transporttest.Net {
		n := &transporttest.Net{}
		var ranks []*Transport
		var sets []*poll.Set
		var cards [][]byte
		for i, s := range sinks {
			tr, set := start(t, Config{Rank: world.Rank(i), Size: len(sinks), Transports: transports}, s)
			ranks, sets, cards = append(ranks, tr), append(sets, set), append(cards, tr.Card())
			n.Ends = append(n.Ends, transporttest.End{Transport: tr, Parker: set})
		}
		for _, tr := range ranks {
			if err := tr.SetCards(cards); err != nil {
				t.Fatal(err)
			}
		}
		n.Kill = func(rank world.Rank) {
			ranks[rank].release()
			for _, r := range ranks {
				if !noticesEnds {
					r.Ended(rank, transport.ErrCut)
				}
			}
		}
		n.Done = func() {
			for _, s := range sets {
				s.Close()
			}
		}
		return n
	}
}

func TestConformanceOverTCP(t *testing.T) { transporttest.Run(t, over("tcp", true)) }

func TestConformanceOverPosix(t *testing.T) { transporttest.Run(t, over("posix,cma", false)) }

func TestFaultyOverTCP(t *testing.T) { transporttest.RunFaulty(t, over("tcp", true)) }

func TestFaultyOverPosix(t *testing.T) { transporttest.RunFaulty(t, over("posix,cma", false)) }

// Over the devices of this machine, where it has some: soft RoCE will do.
func overRDMA(t *testing.T) transporttest.Open {
	if !haveDevice() {
		t.Skipf("make rdma: %v", errDevice)
	}
	return over("", false)
}

func TestConformanceOverRDMA(t *testing.T) { transporttest.Run(t, overRDMA(t)) }

func TestFaultyOverRDMA(t *testing.T) { transporttest.RunFaulty(t, overRDMA(t)) }
