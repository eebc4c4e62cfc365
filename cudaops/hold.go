package cudaops

import (
	"sync/atomic"
	"unsafe"

	"gompi/cudaops/internal/driver"
	"gompi/internal/mem"
)

// A hold is a mem.StreamWait: an event after the work before it, and a word in pinned host memory
// whose next value the Stream waits for. The word only grows, so a hold can be reused as soon as
// the value is stored, even if the device has yet to read it.
type hold struct {
	d     *Device
	ctx   driver.Context
	event driver.Event
	word  *atomic.Uint32
	value uint32 // that lets the work behind begin
}

// holdsAtATime is how many holds are made at a time. Few programs need more: allocating pinned
// memory may block in the driver until no Stream is stopped. Holds are never freed.
const (
	holdsAtATime = 512
	holdSize     = 128 // so that devices do not read each other's words
)

// Hold stops s: work enqueued later begins only after Release. It needs CUDA 11.7 or newer.
func (s *Stream) Hold() (mem.StreamWait, error) {
	h, err := s.d.takeHold()
	if err != nil {
		return nil, err
	}
	h.value = h.word.Load() + 1
	err = driver.Record(h.ctx, h.event, s.handle)
	if err == nil {
		err = driver.StreamWaitValue(h.ctx, s.handle, unsafe.Pointer(h.word), h.value)
	}
	if err != nil {
		s.d.giveHold(h)
		return nil, s.d.failed("hold", err)
	}
	return h, nil
}

// CanHold reports whether the device can stop its streams. It is tried once: some drivers have the
// call but refuse it, and the device attributes describe an older version of it.
func (s *Stream) CanHold() bool { return s.d.canHold() }

// tryHold stops a stream for a moment.
func (d *Device) tryHold() bool {
	s, err := d.borrow()
	if err != nil {
		return false
	}
	defer d.giveBack(s)
	h, err := s.Hold()
	if err != nil {
		return false
	}
	h.Release()
	return s.Sync() == nil
}

// Reached waits until the work before h is done.
func (h *hold) Reached() error { return h.d.failed("hold", driver.SyncEvent(h.ctx, h.event)) }

// Release lets the work behind h begin.
func (h *hold) Release() {
	h.word.Store(h.value)
	h.d.giveHold(h)
}

func (d *Device) giveHold(h *hold) {
	d.mu.Lock()
	d.holds = append(d.holds, h)
	d.mu.Unlock()
}

// takeHold returns a hold that nobody uses.
func (d *Device) takeHold() (*hold, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.holds) == 0 {
		if err := d.makeHolds(); err != nil {
			return nil, d.failed("hold", err)
		}
	}
	h := d.holds[len(d.holds)-1]
	d.holds = d.holds[:len(d.holds)-1]
	return h, nil
}

func (d *Device) makeHolds() error {
	ctx, err := d.context()
	if err != nil {
		return err
	}
	words, err := driver.AllocHost(ctx, holdsAtATime*holdSize)
	if err != nil {
		return err
	}
	for i := range holdsAtATime {
		event, err := driver.NewEvent(ctx)
		if err != nil {
			return err
		}
		d.holds = append(d.holds, &hold{d: d, ctx: ctx, event: event, word: (*atomic.Uint32)(unsafe.Pointer(&words[i*holdSize]))})
	}
	return nil
}
