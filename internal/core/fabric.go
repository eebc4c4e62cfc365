package core

import (
	"context"
	"runtime"

	"gompi/internal/boot"
	"gompi/internal/core/path"
	"gompi/internal/core/progress"
	"gompi/internal/poll"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
)

// A Fabric connects a rank: to its launcher, to other ranks by transports, and to the Parker that
// wakes it. Init makes a Fabric for a process; tests make others.
type Fabric struct {
	Boot   boot.Boot
	Parker transport.Parker
	// Connect makes the transports, which deliver to sink. launcherReady is to be called, from
	// inside a Poll, when the launcher's descriptor is readable.
	Connect func(sink transport.Sink, launcherReady func()) ([]transport.Transport, error)
	// Yield gives the processor to another thread that can run.
	Yield func()
	// Close releases Parker's resources. It may be nil.
	Close func() error
}

// A connection is the Fabric of a rank, with further fields where the rank is a process.
type connection struct {
	Fabric
	// card returns this rank's address for the other ranks; setCards takes the cards of all, and
	// owns the slice. Both may be nil.
	card     func() []byte
	setCards func(cards [][]byte) error
	// spin is how often to poll before the first yield, if ranks do not outnumber processors.
	spin     int
	memory   func() *hostMemory // nil, or the memory to share that Connect found
	setRules func(*path.Rules)  // nil, or takes the rules that all ranks agree on
	// admit takes the card of a rank that comes later; nil if none can.
	admit func(rank world.Rank, card []byte) error
}

// Join makes a goroutine a rank of the job to which f connects.
func Join(ctx context.Context, cfg Config, f Fabric) (*Comm, error) {
	return settings{Config: cfg}.joinFabric(ctx, connection{Fabric: f})
}

// How a rank waits before sleeping.
const (
	// spin is how often a rank with a processor of its own polls before it yields: some hundred
	// microseconds, several times the cost of a wake-up.
	spin = 1000
	// yields is how often a rank then polls, each time after a yield, before it blocks its
	// thread: a yield hands the processor to another rank of the session in 1 us, waking a thread
	// takes 2 (np=2 on one processor, latency of 8 B: 2.1 and 3.3 us). Ranks that yield for
	// longer keep ranks of other sessions from running (five ranks of three hosts on two
	// processors, thousands of messages: 2.5 s with 64 yields and with 4, 3.6 with 128, 5.5 with
	// 1024, and 22 where ranks did not block their threads; without autogroups 2.5).
	yields = 64
	// On a processor that very many ranks share a yield lasts until the others have had their
	// turn, and messages that come meanwhile hardly ever end the wait: with fewYields of them 256
	// ranks on two processors do a barrier in 11 ms, with 64 in 31. Where 32 share a processor
	// the opposite holds, as each wake-up costs more (64 ranks, an allreduce of 64 KiB: 1.9 ms
	// with 8 and with 64 yields, 3.2 with 1).
	fewYields, fewYieldsFrom = 4, 64
)

// yieldsOf returns how often a rank yields where so many share a processor.
func yieldsOf(ranks int) int {
	if ranks > fewYieldsFrom {
		return fewYields
	}
	return yields
}

// connect connects this process to the job that b belongs to.
func (cfg settings) connect(b boot.Boot) (connection, error) {
	info := b.Info()
	if info.Size == 1 {
		return solo(b), nil
	}
	if !cfg.KeepScheduling {
		if runtime.GOMAXPROCS(0) < 2 { // the same again would end Go's own updates
			runtime.GOMAXPROCS(2)
		}
		progress.ShortenSlices()
	}
	bell := -1
	if int(info.LocalRank) < len(info.Bells) {
		bell = info.Bells[info.LocalRank]
	}
	set, err := poll.New(bell)
	if err != nil {
		return connection{}, err
	}
	return cfg.network(b, set)
}

// yield returns the function that gives the processor away.
func (cfg settings) yield() func() {
	if cfg.KeepScheduling {
		return progress.Yield
	}
	return progress.YieldShort
}

// solo is the fabric of a world of a single rank.
func solo(b boot.Boot) connection {
	return connection{spin: spin, Fabric: Fabric{
		Boot:    b,
		Parker:  inproc.NewParker(),
		Connect: func(transport.Sink, func()) ([]transport.Transport, error) { return nil, nil },
		Yield:   progress.Yield,
	}}
}
