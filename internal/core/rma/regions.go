package rma

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
	"unsafe"

	"gompi/internal/core"
	"gompi/internal/core/layout"
	"gompi/internal/core/lease"
)

// ErrRange: the target is not in memory that is attached to a dynamic window. Nothing was done.
// If the target rank shares no memory with this rank, the call that waits for the operation
// returns ErrRange.
var ErrRange = fmt.Errorf("%w: memory that is not attached to the window", core.ErrArgument)

// A region is memory that was attached.
type region struct {
	base uintptr
	size int
	keep any
}

// A list is the regions of a rank, in the page of its control words: the ranks of its host look
// there before they access its memory. Its room is limited. A reader in another process takes no
// list that changes meanwhile. The owner makes version odd before its stores and even after them;
// the reader loads version before its loads and after them. All are atomic, so sequentially
// consistent: a reader that sees any of the stores finds another version at the end.
type list struct {
	version atomic.Uint64
	count   atomic.Uint64 // of all regions
	regions [mostListed]struct{ from, to atomic.Uintptr }
}

const (
	listAt     = 1024 // in the page, behind the control words
	mostListed = 190
)

var (
	_ [listAt - unsafe.Sizeof(lease.Control{})]byte
	_ [controlBytes - listAt - unsafe.Sizeof(list{})]byte
)

func listOf(c *lease.Control) *list { return (*list)(unsafe.Add(unsafe.Pointer(c), listAt)) }

// publish stores regions, of which the lock is held.
func (l *list) publish(regions []region) {
	l.version.Add(1)
	l.count.Store(uint64(len(regions)))
	for i, g := range regions[:min(len(regions), mostListed)] {
		l.regions[i].from.Store(g.base)
		l.regions[i].to.Store(g.base + uintptr(g.size))
	}
	l.version.Add(1)
}

// triesOfList bounds a reader's attempts to read a list that does not change meanwhile.
const triesOfList = 8

// has reports whether all bytes of some runs are in regions, if a stable list was read.
func (l *list) has(t *Target) (attached, known bool) {
	for range triesOfList {
		before := l.version.Load()
		n := l.count.Load()
		if before%2 == 1 {
			continue
		}
		if n > mostListed {
			return false, false
		}
		attached = t.isIn(int(n), func(i int) (from, to uintptr) {
			return l.regions[i].from.Load(), l.regions[i].to.Load()
		})
		if l.version.Load() == before {
			return attached, true
		}
	}
	return false, false
}

// isIn reports whether all of a target is in n regions, sorted by their ends, which may touch.
func (t *Target) isIn(n int, at func(i int) (from, to uintptr)) bool {
	lo, hi := t.Layout.Bounds()
	if spanIsIn(t.At+lo, t.At+hi, n, at) {
		return true
	}
	all := true
	t.Layout.Runs(func(off, bytes int, _ layout.Element) {
		all = all && spanIsIn(t.At+off, t.At+off+bytes, n, at)
	})
	return all
}

func spanIsIn(lo, hi, n int, at func(i int) (from, to uintptr)) bool {
	if lo < 0 || hi < lo {
		return false // the sum has overflowed
	}
	from, to := uintptr(lo), uintptr(hi)
	first := sort.Search(n, func(i int) bool {
		_, end := at(i)
		return end > from
	})
	for i := first; from < to; i++ {
		if i >= n {
			return false
		}
		switch begin, end := at(i); {
		case begin <= from:
			from = max(from, end)
		case begin < end: // an empty region may lie inside another
			return false
		}
	}
	return true
}

// checkAttached returns an error if a target is known here not to be attached.
func (w *Window) checkAttached(t *Target) error {
	p, attached, known := &w.parts[t.Rank], false, false
	switch {
	case t.Rank == w.me:
		w.attachment.Lock()
		attached, known = t.isIn(len(w.regions), func(i int) (from, to uintptr) {
			return w.regions[i].base, w.regions[i].base + uintptr(w.regions[i].size)
		}), true
		w.attachment.Unlock()
	case p.Control != nil:
		attached, known = listOf(p.Control).has(t)
	}
	if known && !attached {
		return fmt.Errorf("%w: %d bytes from %#x on", ErrRange, t.Layout.Size(), t.At)
	}
	t.unlisted = !known
	return nil
}

// Attach makes memory a part of a dynamic window, in which its offset is its address.
func (w *Window) Attach(base uintptr, size int, keep any) error {
	w.attachment.Lock()
	defer w.attachment.Unlock()
	for _, g := range w.regions {
		if min(size, g.size) > 0 && base < g.base+uintptr(g.size) && g.base < base+uintptr(size) {
			return fmt.Errorf("%w: the memory is attached already, or some of it", core.ErrArgument)
		}
	}
	g := region{base, size, keep}
	end := func(g region) uintptr { return g.base + uintptr(g.size) }
	i, _ := slices.BinarySearchFunc(w.regions, g, func(a, b region) int { return cmp.Compare(end(a), end(b)) })
	w.regions = slices.Insert(w.regions, i, g)
	listOf(w.parts[w.me].Control).publish(w.regions)
	return nil
}

// Detach undoes Attach.
func (w *Window) Detach(base uintptr) error {
	w.attachment.Lock()
	defer w.attachment.Unlock()
	i := slices.IndexFunc(w.regions, func(g region) bool { return g.base == base })
	if i < 0 {
		return fmt.Errorf("%w: no memory that begins there is attached", core.ErrArgument)
	}
	w.regions = slices.Delete(w.regions, i, i+1)
	listOf(w.parts[w.me].Control).publish(w.regions)
	return nil
}
