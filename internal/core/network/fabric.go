package network

import (
	"gompi/internal/boot"
	"gompi/internal/core/path"
	"gompi/internal/core/progress"
	"gompi/internal/world"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/shm"
)

// A Fabric connects a rank: to its launcher, to other ranks by transports, and to the Parker that
// wakes it. Settings.Connect makes one for a process; tests make others.
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

// A Connection is the Fabric of a rank, with further fields, which may all be zero, where the rank
// is a process.
type Connection struct {
	Fabric
	Spin int // polls before the first yield, if ranks do not outnumber processors
	// Card returns this rank's address for the other ranks; SetCards takes the cards of all, by
	// rank, and Admit the card of a rank that joins later.
	Card     func() []byte
	SetCards func(cards [][]byte) error
	Admit    func(rank world.Rank, card []byte) error
	// Shared returns the transport through shared memory that Connect made, nil if there is none.
	Shared func() *shm.Transport
	// SetRules takes the rules that all ranks agree on.
	SetRules func(*path.Rules)
}

const spin = 1000 // some hundred microseconds, several times the cost of a wake-up

// solo is the connection of a world of a single rank.
func solo(b boot.Boot) Connection {
	return Connection{Spin: spin, Fabric: Fabric{
		Boot:    b,
		Parker:  inproc.NewParker(),
		Connect: func(transport.Sink, func()) ([]transport.Transport, error) { return nil, nil },
		Yield:   progress.Yield,
	}}
}
