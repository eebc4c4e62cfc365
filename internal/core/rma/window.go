package rma

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/core/lease"
	"gompi/internal/core/memory"
	"gompi/internal/mem"
)

// A Kind is whose memory a window is.
type Kind int

const (
	Created   Kind = iota // the caller's
	Allocated             // each rank's own, allocated with the window
	Shared                // the same, on a single host, with consecutive parts
	Dynamic               // memory attached later
)

// Config is a rank's description of a new window. Only Kind is the same on all ranks.
type Config struct {
	Kind Kind
	// Base is the address of a Created window's memory. Keep keeps Go's memory alive.
	Base uintptr
	Keep any
	Size int // bytes of this rank's part
	Unit int // the unit in which other ranks count offsets here, in bytes
	// Apart has the parts of a Shared window begin on pages of their own.
	Apart bool
	// Custom returns the function that combines packed elements that no mem.Type describes.
	Custom func(code uint64) func(acc, in []byte)
}

// A Window is memory of each rank of a communicator that the others reach. Its methods may be
// called from several goroutines, but the methods that begin and end epochs one at a time.
type Window struct {
	Comm *core.Comm // the window's own

	cfg    Config
	me     int
	parts  []part
	shared *lease.Window // parts, for C
	own    []mem.Buffer  // for FreeLocal
	key    []byte        // with which devices of other hosts access this part; nil if they cannot
	total  int           // bytes allocated for all parts of a Shared window

	posts  []int // ranks that this rank has posted to
	starts []int // ranks that this rank has started to access
	dones  []core.Request

	mu      sync.Mutex // guards pending and room, and the order of messages
	pending []pending  // by rank
	room    []byte

	mine       sync.Mutex // held with the lock of this rank's elements
	server     *server    // nil if no rank needs a server here
	attachment sync.Mutex // guards regions
	regions    []region   // of a dynamic window, sorted
}

// A part is the memory of a rank.
type part struct {
	*lease.Part
	base   uintptr // the part's address in the rank
	kernel *memory.Kernel
	remote *memory.Remote
	same   bool // the rank is on this host
}

// A pending holds the operations to a rank that may be under way.
type pending struct {
	requests underWay
	callers  underWay // requests that callers have, and wait for
	flushes  int      // that wait for some of them
	sent     bool     // something that no answer will come for, which a Flush has to wait for
	written  bool     // the same, by a device
}

// controlBytes are the bytes of a part's control words: a page, as the heap gives memory.
const controlBytes = 4096

// New, collective, makes a window of c's ranks. From then on c belongs to it, even after an error.
func New(ctx context.Context, c *core.Comm, cfg Config) (*Window, error) {
	w := &Window{
		Comm: c, cfg: cfg, me: c.Rank(), parts: make([]part, c.Size()),
		pending: make([]pending, c.Size()), room: make([]byte, mostRequest),
	}
	parts := make([]lease.Part, c.Size())
	for r := range parts {
		w.parts[r].Part = &parts[r]
	}
	w.shared = lease.NewWindow(parts, w.Comm.Broken())
	cards, err := w.meet(ctx)
	if err == nil {
		err = w.arrange(cards)
	}
	if err == nil {
		err = w.exchangeKeys(ctx, cards)
	}
	if err != nil {
		w.release()
		c.Close(ctx)
		return nil, err
	}
	return w, nil
}

// A rank's description of its part for the others: words of a card.
const (
	cardFailed = iota
	cardBase
	cardSize
	cardUnit
	cardControl // place of the control words
	cardPlace   // and of the memory
	cardKey     // bytes of its key, which follows in other words
	cardWords
)

// meet allocates this rank's memory, and returns the cards of all ranks.
func (w *Window) meet(ctx context.Context) ([]uint64, error) {
	n := len(w.parts)
	sizes, err := w.sizes(ctx)
	if err != nil {
		return nil, err
	}
	failed := w.allocate(sizes)
	w.Comm.Expose()
	p := &w.parts[w.me]
	mine := make([]uint64, cardWords)
	if failed != nil {
		mine[cardFailed] = 1
	} else {
		mine[cardBase], mine[cardSize], mine[cardUnit] = uint64(p.base), uint64(p.Size), uint64(p.Unit)
		mine[cardControl] = w.Comm.Locate(uintptr(unsafe.Pointer(p.Control)), controlBytes)
		if n := max(p.Size, w.total); n > 0 && p.base != 0 {
			mine[cardPlace] = w.Comm.Locate(p.base, n)
		}
		if p.Size > 0 && p.base != 0 {
			w.key = w.Comm.Key(p.base, p.Size)
			mine[cardKey] = uint64(len(w.key))
		}
	}
	all := make([]uint64, n*cardWords)
	if err := w.Comm.Do(ctx, new(call.Call).Allgather(mem.Of(mine), mem.Of(all))); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	for r := range n {
		if all[r*cardWords+cardFailed] != 0 {
			return nil, fmt.Errorf("%w: rank %d has not got its part of the window", core.ErrMemory, r)
		}
	}
	return all, nil
}

// sizes returns the sizes of all parts, if the window needs them, else only this part's.
func (w *Window) sizes(ctx context.Context) ([]int, error) {
	all := make([]int, len(w.parts))
	all[w.me] = w.cfg.Size
	if w.cfg.Kind != Shared {
		return all, nil
	}
	return all, w.Comm.Do(ctx, new(call.Call).Allgather(mem.Of([]int{w.cfg.Size}), mem.Of(all)))
}

// allocate takes memory for this rank's part and its control words. In a Shared window whose
// parts are not apart, rank 0 takes the memory of all.
func (w *Window) allocate(sizes []int) error {
	p := &w.parts[w.me]
	p.base, p.Size, p.Unit = w.cfg.Base, w.cfg.Size, w.cfg.Unit
	more := 0
	switch {
	case w.cfg.Kind == Allocated || w.cfg.Kind == Shared && w.cfg.Apart:
		more = w.cfg.Size
	case w.cfg.Kind == Shared && w.me == 0:
		for _, n := range sizes {
			if n > math.MaxInt-w.total {
				return fmt.Errorf("%w: %d bytes and more for all ranks", core.ErrMemory, n)
			}
			w.total += n
		}
		more = w.total
	}
	words, err := w.take(controlBytes)
	if err != nil {
		return err
	}
	p.Control = (*lease.Control)(words)
	if more > 0 {
		at, err := w.take(more)
		if err != nil {
			return err
		}
		p.base = uintptr(at)
	}
	return nil
}

// take allocates n bytes that the ranks of this host see, if they share memory. A Shared window's
// memory is seen even if messages go by TCP.
func (w *Window) take(n int) (unsafe.Pointer, error) {
	if w.cfg.Kind == Shared {
		b, err := w.Comm.AllocMapped(n)
		if err != nil {
			return nil, err
		}
		w.own = append(w.own, mem.Of(b))
		return unsafe.Pointer(unsafe.SliceData(b)), nil
	}
	b, err := w.Comm.AllocLocal(mem.U8, n)
	if err != nil {
		return nil, err
	}
	w.own = append(w.own, b)
	return unsafe.Pointer(unsafe.SliceData(b.HostSlice())), nil
}

// arrange finds out how each part is reached.
func (w *Window) arrange(cards []uint64) error {
	w.shared.Local = true
	for r := range w.parts {
		card, p := cards[r*cardWords:][:cardWords], &w.parts[r]
		p.same = r == w.me || w.Comm.Shares(r) || w.cfg.Kind == Shared && w.Comm.Maps(r)
		if !p.same || card[cardControl] == 0 && len(w.parts) > 1 {
			w.shared.Local = false
		}
	}
	before := 0
	for r := range w.parts {
		card, p := cards[r*cardWords:][:cardWords], &w.parts[r]
		if r == w.me {
			p.Direct, p.Here = true, p.base
		} else {
			p.base, p.Size, p.Unit = uintptr(card[cardBase]), int(card[cardSize]), int(card[cardUnit])
			if p.same && card[cardControl] != 0 {
				w.join(r, p, card)
			}
		}
		p.Shared = w.cfg.Kind == Shared || card[cardPlace] != 0
		if w.cfg.Kind == Shared && !w.cfg.Apart {
			if !w.shared.Local {
				return fmt.Errorf("%w: a shared window of ranks that share no memory", core.ErrArgument)
			}
			p.Direct, p.Here = true, w.parts[0].Here+uintptr(before)
			before += p.Size
		}
	}
	if w.cfg.Kind == Shared && !w.shared.Local {
		return fmt.Errorf("%w: a shared window of ranks that share no memory", core.ErrArgument)
	}
	w.shared.AllDirect = !slices.ContainsFunc(w.parts, func(p part) bool { return !p.Direct })
	if w.needsServer(cards) {
		w.serve()
	}
	return nil
}

// exchangeKeys has the ranks of other hosts access the parts that have keys by their devices.
func (w *Window) exchangeKeys(ctx context.Context, cards []uint64) error {
	most := 0
	for r := range w.parts {
		most = max(most, int(cards[r*cardWords+cardKey]))
	}
	if most == 0 {
		return nil
	}
	keys, mine := make([]byte, most*len(w.parts)), make([]byte, most)
	copy(mine, w.key)
	if err := w.Comm.Do(ctx, new(call.Call).Allgather(mem.Of(mine), mem.Of(keys))); err != nil {
		return err
	}
	for r := range w.parts {
		if n := int(cards[r*cardWords+cardKey]); n > 0 && !w.parts[r].same {
			w.parts[r].remote = w.Comm.Remote(r, keys[r*most:][:n])
		}
	}
	return nil
}

// join finds the memory of a rank of this host.
func (w *Window) join(r int, p *part, card []uint64) {
	p.Control = (*lease.Control)(w.Comm.Mapped(r, card[cardControl]))
	switch {
	case card[cardPlace] != 0:
		p.Direct, p.Here = true, uintptr(w.Comm.Mapped(r, card[cardPlace]))
	case p.Size == 0 && w.cfg.Kind != Dynamic:
		p.Direct = true
	case w.cfg.Kind == Shared: // rank 0 has the memory of all
	default:
		p.kernel = w.Comm.Kernel(r)
	}
}

// needsServer reports whether other ranks reach this rank's memory or locks by messages.
func (w *Window) needsServer(cards []uint64) bool {
	mine := cards[w.me*cardWords:][:cardWords]
	private := w.cfg.Kind == Dynamic || mine[cardPlace] == 0 && w.parts[w.me].Size > 0 && w.cfg.Kind != Shared
	return !w.shared.Local || len(w.parts) > 1 && private
}

// Size returns the bytes of a rank's part, 0 in a dynamic window, and Unit the unit of offsets.
func (w *Window) Size(rank int) int { return w.parts[rank].Size }

// Unit is described at Size.
func (w *Window) Unit(rank int) int { return w.parts[rank].Unit }

// Memory returns a rank's part, if this rank reaches that part directly.
func (w *Window) Memory(rank int) (base uintptr, size int, ok bool) {
	p := &w.parts[rank]
	return p.Here, p.Size, p.Direct && w.cfg.Kind != Dynamic
}

// ForC returns the state that C needs to access w.
func (w *Window) ForC() *lease.Window { return w.shared }

// Kind returns how w was made.
func (w *Window) Kind() Kind { return w.cfg.Kind }

// Free ends the window. Free is collective, and waits for all that is under way, on all ranks.
// The memory of an Allocated or Shared window must not be touched any more.
func (w *Window) Free(ctx context.Context) error {
	err := w.Fence(ctx)
	w.stop()
	if err == nil || errors.Is(err, ErrRange) {
		w.release()
	} // else peers may still use the memory: it goes with the last communicator
	if closed := w.Comm.Close(ctx); err == nil {
		err = closed
	}
	return err
}

func (w *Window) release() {
	for r := range w.parts {
		if m := w.parts[r].remote; m != nil {
			m.Close()
		}
	}
	for _, b := range w.own {
		_ = w.Comm.FreeLocal(b) // b is AllocLocal's or AllocMapped's
	}
	w.own = nil
}

// fault wraps err with the operation and the peer.
func (w *Window) fault(op string, peer int, err error) error {
	if err == nil {
		return nil
	}
	var of *core.Error // an operation that consists of this operation
	if errors.As(err, &of) {
		err = of.Err
	}
	e := &core.Error{Op: op, Comm: w.Comm.Name(), Rank: w.me, Peer: -1, Err: err}
	var revoked *core.RevokedError // which names the rank that matters
	if peer >= 0 && peer < len(w.parts) && !errors.As(err, &revoked) {
		e.Peer, e.Host = peer, w.Comm.Host(peer)
	}
	return e
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", core.ErrArgument, fmt.Sprintf(format, args...))
}
