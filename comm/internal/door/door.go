// Package door is what package comm lets other packages of comm/internal do with a communicator
// besides its public methods: any call.Call, with an operator of theirs and elements that are no
// mem.Type, and a Close that lets messages under way arrive. Package comm cannot have exported
// methods for that, as they would be part of its public API, and the packages that use it import
// comm, so that comm cannot import them.
package door

import (
	"context"
	"sync/atomic"
	"unsafe"

	"gompi/comm/internal/call"
	"gompi/comm/internal/layout"
	"gompi/comm/internal/lease"
)

// A Comm is a communicator. Request is comm.Request, which this package cannot name.
type Comm[Request any] interface {
	// Do does o, as blocking collectives do, and returns the same errors. It does not keep o.
	Do(ctx context.Context, o *call.Call) error
	// Start starts o, as nonblocking collectives do. It copies o, but not what its slices hold: o
	// may be changed or started again at once. It allocates nothing.
	Start(o *call.Call) Request
	// StartDup starts a Dup. When the Request is complete, with err or nil, the caller calls finish
	// once: it returns the *comm.Comm, and waits for nothing.
	StartDup() (r Request, finish func(err error) (any, error))
	// Promise returns a Request that Complete ends, once: of what the caller does itself, perhaps
	// in several steps. Waits for it are like those for messages.
	Promise() Request
	// Complete ends a Promise of this communicator's.
	Complete(r Request, err error)
	// AwaitAll waits until all of rs are complete. Wait then returns their outcomes. It fails only
	// if ctx ends first.
	AwaitAll(ctx context.Context, rs []Request) error
	// Attach lets C use l for messages of bytes and collectives, and reports whether it can: ranks
	// of this host share memory. mix has it leave some of them to Go.
	Attach(l *lease.Lease, mix bool) bool
	// Lend lends the communicator, which C calls slot, for messages with rank, or all if that is
	// AnySource.
	Lend(slot, rank int)
	// LendTeam lends the communicator, which C calls slot, for short collectives, if C can do them
	// and none is under way.
	LendTeam(l *lease.Lease, slot int)
	// TakeOver calls f for the receives that C holds, in order, to post them. Nothing is lent until
	// the lease Holds none.
	TakeOver(f func(lease.Receive))
	// Claim takes back what is lent and has the lease Hold something, for whoever calls from now on
	// to wait. It reports false, and does nothing, if C holds receives. Nothing is lent until
	// EndClaim, which is told whether C holds receives now.
	Claim() bool
	EndClaim(holds bool)
	// Withdraw takes back receives that are posted and have no message, all or none, and reports
	// whether it has: only if nothing else is under way. Then rs name nothing.
	Withdraw(rs []Request) bool
	// Unlend ends that: slot is that of another communicator from now on.
	Unlend(slot int)
	// Stats turns the counting of calls on or off for a tool; with gompirun -stats it is on. It
	// returns where C counts them, a counters of package stats, nil if nothing was counted yet, the
	// ranks in the job by local rank, as int32, and whether C is to count.
	Stats(tool bool) (counters, worlds unsafe.Pointer, on bool, err error)
	// Wake wakes a local rank that C has sent something to.
	Wake(local int)
	// AgreeOn is Agree of bytes: it returns what each member that lives has given, by rank, nil for
	// the others, and how many have died, the same on all.
	AgreeOn(ctx context.Context, mine []byte) (all [][]byte, dead int, err error)
	// Signal sends to ch, which has room for one, when the operation r is complete, once. Nobody
	// need wait for r. It does so at once if r is complete. If that will be soon, somebody polls
	// meanwhile.
	Signal(r Request, ch chan<- struct{}, soon bool)
	// Broken returns a word that is true when the communicator is broken or closed.
	Broken() *atomic.Bool
	// Progress polls once, as Request.Test does: for loops that wait for a word in memory.
	Progress()
	// Shares reports whether this rank and another share memory.
	Shares(rank int) bool
	// Locate returns where n bytes of this rank's lie, for ranks that share memory with it, 0 if
	// they are not in such memory. Mapped returns where this rank has what another one has located.
	Locate(at uintptr, n int) uint64
	Mapped(rank int, place uint64) unsafe.Pointer
	// Expose lets the ranks of this host reach memory of this process through the kernel; they call
	// Kernel later, which returns nil if it cannot be.
	Expose()
	Kernel(rank int) Kernel
	// Key returns what ranks that do not share memory with this one need to access n bytes of it by
	// their network devices, past this rank; nil if they cannot. Remote is for that of another.
	Key(at uintptr, n int) []byte
	Remote(rank int, key []byte) Remote[Request]
	// ID returns the number of the communicator that Init's names is asked for.
	ID() uint64
	// Dead returns the members that are known to have died, in an order that is the same on all.
	Dead() []int
	// CloseWhenIdle closes the communicator as Close does, but waits for no rank: what was started
	// on it goes on, and it is closed when all of that is complete. The caller starts nothing on it
	// any more. closed delivers the error of Close, once. The job is left with the last
	// communicator that is closed: to leave it, wait for closed of all others, then Close that.
	CloseWhenIdle() (closed <-chan error)
}

// A Kernel copies from and to private memory of another process: spans one behind the other, which
// are as long as the slice. It changes them.
type Kernel interface {
	Read(dst []byte, from []Span) error
	Write(src []byte, to []Span) error
}

// A Remote is memory of another rank that a network device accesses. Places are that rank's
// addresses. Where too much is under way a method returns 0 or false and has done nothing: it is to
// be called again after Progress.
type Remote[Request any] interface {
	// Reached reports whether that works, which it does once messages have connected the two.
	Reached() bool
	// Write stores n bytes of src, which may be changed at once.
	Write(at uintptr, src []byte) (n int, err error)
	// Read stores n bytes in dst when r is complete.
	Read(at uintptr, dst []byte) (n int, r Request, err error)
	// Flush returns what is complete when all that was written before is stored there.
	Flush() (r Request, begun bool, err error)
	// Close frees what this rank holds, when all that it has begun is complete.
	Close()
}

// A Span is some bytes of another process.
type Span = struct {
	At  uintptr
	Len int
}

// Of returns the door to c, a *comm.Comm. It allocates nothing.
func Of[Request any](c any) Comm[Request] { return open(c).(Comm[Request]) }

var open func(c any) any

// Layout returns the offsets and numbers of what C uses of a Lease, in the order of GOMPI_LAYOUT in
// lease.h: at the end those of package lease.
func Layout() []uintptr { return append(lent(), lease.Layout()...) }

var lent func() []uintptr

// Names returns the name of the communicator with an ID, "" if it knows none, and whether that is
// one of a persistent collective's own. It must not wait for a lock of comm's.
type Names func(id uint64) (name string, persistent bool)

// InitMPI is comm.Init for an MPI program: the launcher reports its calls by the names of MPI's
// functions, and of communicators by names. It returns the *comm.Comm.
func InitMPI(ctx context.Context, names Names) (any, error) {
	return initMPI(ctx, names)
}

var initMPI func(ctx context.Context, names Names) (any, error)

// Runs returns what a comm.Layout names, in elements of one byte, and whether it names one twice.
func Runs(l any) (runs layout.Layout, overlap bool) { return runsOf(l) }

var runsOf func(l any) (runs layout.Layout, overlap bool)

// Install is called by package comm, once. o returns the Comm of a *comm.Comm, l the layout of
// rings, r is Runs, i is InitMPI.
func Install(o func(c any) any, l func() []uintptr, r func(l any) (layout.Layout, bool), i func(ctx context.Context, names Names) (any, error)) {
	open, lent, runsOf, initMPI = o, l, r, i
}
