package cudaops

import (
	"fmt"
	"unsafe"

	"gompi/cudaops/internal/driver"
	"gompi/internal/mem"
)

// A Stream is a mem.Stream: work on a Device, done in order. Calls enqueue work and return before
// the work is done. Until then Buffers, also pinned host memory, must stay unchanged. One goroutine
// at a time uses a Stream.
type Stream struct {
	d      *Device
	ctx    driver.Context
	handle driver.Stream
	event  driver.Event // for blocking calls
}

// NewStream returns a Stream that is independent of others, for Close to free.
func (d *Device) NewStream() (*Stream, error) {
	ctx, err := d.context()
	if err != nil {
		return nil, d.failed("context", err)
	}
	handle, err := driver.NewStream(ctx)
	if err != nil {
		return nil, d.failed("new stream", err)
	}
	event, err := driver.NewEvent(ctx)
	if err != nil {
		driver.CloseStream(ctx, handle)
		return nil, d.failed("new event", err)
	}
	return &Stream{d: d, ctx: ctx, handle: handle, event: event}, nil
}

// Close waits for the Stream's work and frees the Stream.
func (s *Stream) Close() error {
	err := s.Sync()
	driver.CloseEvent(s.ctx, s.event)
	driver.CloseStream(s.ctx, s.handle)
	return err
}

// Sync waits for all work of the Stream, asleep after a while. Its error may come from much earlier
// work; every later call then returns the error, too.
func (s *Stream) Sync() error {
	return s.d.failed("stream", driver.SyncStream(s.ctx, s.handle, s.event))
}

// Copy enqueues a copy within device memory, or between device and host memory. Copy asks the
// driver whether host memory is pinned, and fails if not.
func (s *Stream) Copy(dst, src Buffer) error {
	for _, b := range []Buffer{dst, src} {
		if b.Len() == 0 || !b.IsHost() {
			continue
		}
		if place, err := driver.Locate(b.Addr()); err != nil || !place.Pinned {
			return s.d.failed("copy on a stream",
				fmt.Errorf("host memory at %#x is not pinned: want memory of AllocHost", b.Addr()))
		}
	}
	return s.copy(dst, src, 0)
}

func (s *Stream) copy(dst, src Buffer, wait driver.Event) error {
	if dst.Size() != src.Size() {
		return s.d.failed("copy", fmt.Errorf("%d bytes to a buffer of %d", src.Size(), dst.Size()))
	}
	for _, b := range []Buffer{dst, src} {
		if _, cuda := b.Space().(*Device); !cuda && !b.IsHost() {
			return s.d.failed("copy", fmt.Errorf("from %s to %s: want memory of CUDA devices or the host",
				src.Space().Name(), dst.Space().Name()))
		}
	}
	if dst.Size() == 0 {
		return nil
	}
	if err := driver.Copy(s.ctx, deviceAddr(dst), pointer(dst), deviceAddr(src), pointer(src), dst.Size(), s.handle,
		wait); err != nil {
		return s.d.failed(fmt.Sprintf("copy of %d bytes from %s to %s", src.Size(), src.Space().Name(),
			dst.Space().Name()), err)
	}
	return nil
}

// deviceAddr returns b's address, 0 for host memory.
func deviceAddr(b Buffer) uintptr {
	if b.IsHost() {
		return 0
	}
	return b.Addr()
}

// Clear enqueues the zeroing of b, device memory.
func (s *Stream) Clear(b Buffer) error {
	if b.Len() == 0 {
		return nil
	}
	if b.Space() != s.d {
		return s.d.failed("clear", fmt.Errorf("%d bytes in %s: want memory of %s", b.Size(),
			b.Space().Name(), s.d.name))
	}
	return s.d.failed("clear", driver.Clear(s.ctx, b.Addr(), b.Size(), s.handle))
}

// Space returns the memory of s's device, a *Device.
func (s *Stream) Space() mem.Space { return s.d }

// Wait makes later work of s wait for e.
func (s *Stream) Wait(e *Event) error {
	return s.d.failed("wait for an event", driver.StreamWait(s.ctx, s.handle, e.handle))
}

// An Event is a point in the work of a Stream.
type Event struct {
	d      *Device
	ctx    driver.Context
	handle driver.Event
}

// NewEvent returns an Event that is done until recorded, for Close to free.
func (d *Device) NewEvent() (*Event, error) {
	ctx, err := d.context()
	if err != nil {
		return nil, d.failed("context", err)
	}
	handle, err := driver.NewEvent(ctx)
	if err != nil {
		return nil, d.failed("new event", err)
	}
	return &Event{d, ctx, handle}, nil
}

// Record makes e the point after all present work of s.
func (e *Event) Record(s *Stream) error {
	return e.d.failed("record of an event", driver.Record(e.ctx, e.handle, s.handle))
}

// Done reports whether the Stream has reached e.
func (e *Event) Done() (bool, error) {
	done, err := driver.Done(e.ctx, e.handle)
	return done, e.d.failed("event", err)
}

// Sync waits until the Stream has reached e.
func (e *Event) Sync() error { return e.d.failed("event", driver.SyncEvent(e.ctx, e.handle)) }

// Close frees e. Streams that already wait for e still do.
func (e *Event) Close() error { return e.d.failed("event", driver.CloseEvent(e.ctx, e.handle)) }

// A streamEvent is an Event of one Stream.
type streamEvent struct {
	*Event
	s *Stream
}

// NewEvent returns an Event for points of the Stream's work.
func (s *Stream) NewEvent() (mem.Event, error) {
	e, err := s.d.NewEvent()
	if err != nil {
		return nil, err
	}
	return streamEvent{e, s}, nil
}

func (m streamEvent) Set() error  { return m.Record(m.s) }
func (m streamEvent) Wait() error { return m.Sync() }

// A Module is kernels compiled for a Device.
type Module struct {
	d      *Device
	ctx    driver.Context
	handle driver.Module
}

// LoadPTX compiles PTX for the device, which takes milliseconds and more. Its error has the
// compiler's log.
func (d *Device) LoadPTX(ptx string) (*Module, error) {
	ctx, err := d.context()
	if err != nil {
		return nil, d.failed("context", err)
	}
	handle, err := driver.LoadModule(ctx, ptx)
	if err != nil {
		return nil, d.failed("loading a module", err)
	}
	return &Module{d, ctx, handle}, nil
}

// Kernel returns the module's kernel with a name. Its only parameter is a struct by value.
func (m *Module) Kernel(name string) (Kernel, error) {
	k, err := driver.FindKernel(m.ctx, m.handle, name)
	return Kernel{k}, m.d.failed("kernel "+name, err)
}

// Close unloads the module; its kernels must not be used any more.
func (m *Module) Close() error { return m.d.failed("module", driver.CloseModule(m.ctx, m.handle)) }

// A Kernel is a function that runs on a Device.
type Kernel struct{ handle driver.Kernel }

// Launch enqueues a kernel on s: grid blocks of block threads each. args is the kernel's parameter,
// a struct of numbers laid out as in C. Memory at addresses in args must stay until the kernel is
// done.
func Launch[Args any](s *Stream, k Kernel, grid, block int, args *Args) error {
	return s.d.failed("launch", driver.Launch(s.ctx, k.handle, grid, block, unsafe.Pointer(args), s.handle))
}
