//go:build linux && cgo && !gompi_nocuda

package driver

// #cgo LDFLAGS: -ldl
// #cgo noescape gompi_loaded
// #cgo nocallback gompi_loaded
// #cgo noescape gompi_describe
// #cgo nocallback gompi_describe
// #cgo noescape gompi_memory
// #cgo nocallback gompi_memory
// #cgo noescape gompi_place_of
// #cgo nocallback gompi_place_of
// #cgo nocallback gompi_copy
// #cgo noescape gompi_launch
// #cgo nocallback gompi_launch
// #include <stdlib.h>
// #include "driver.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"
)

// failed returns r's error, nil for success.
func failed(r C.gompi_result) error {
	if r.code == 0 {
		return nil
	}
	e := &Error{Call: C.GoString(r.call), Code: int(r.code), Name: "CUDA_ERROR_NOT_FOUND",
		Text: "this driver lacks the function"}
	if r.code != NotFound {
		e.Name, e.Text = C.GoString(C.gompi_error_name(r.code)), C.GoString(C.gompi_error_text(r.code))
	}
	return e
}

func value(r C.gompi_result) (uintptr, error) { return uintptr(r.value), failed(r) }

var load struct {
	sync.Once
	devices int
	err     error
}

// Load opens the named library, or the first of the usual names if it is "", and starts the driver,
// once. It returns the number of devices.
func Load(library string) (devices int, err error) {
	load.Do(func() { load.devices, load.err = open(library) })
	return load.devices, load.err
}

func open(library string) (int, error) {
	names := []string{library}
	if library == "" {
		names = []string{"libcuda.so.1", "libcuda.so"}
	}
	var err error
	for _, name := range names {
		if err = dlopen(name); err == nil {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	n, err := value(C.gompi_init())
	return int(n), err
}

func dlopen(name string) error {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	if wrong := C.gompi_load(s); wrong != nil {
		return errors.New(C.GoString(wrong))
	}
	return nil
}

// Loaded reports whether any library in this process has opened the driver. If not, no address is a
// device's.
func Loaded() bool { return C.gompi_loaded() != 0 }

// Likely reports whether a driver with devices may exist, without opening it: a library is named or
// already open, or the driver's device files exist.
func Likely(library string) bool {
	if library != "" || Loaded() {
		return true
	}
	for _, file := range []string{"/dev/nvidiactl", "/dev/dxg"} { // dxg is in WSL
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// Describe describes a device.
func Describe(ordinal int) (Description, error) {
	var d C.gompi_device
	if err := failed(C.gompi_describe(C.int(ordinal), &d)); err != nil {
		return Description{}, err
	}
	return Description{
		Name: C.GoString(&d.name[0]), Bus: C.GoString(&d.bus[0]), Memory: int(d.memory), Processors: int(d.processors),
		Major: int(d.major), Minor: int(d.minor),
	}, nil
}

// Retain returns the device's primary context, which other libraries of the process share.
func Retain(ordinal int) (Context, error) {
	v, err := value(C.gompi_retain(C.int(ordinal)))
	return Context(v), err
}

// Memory returns the free bytes of the device's memory, and all of them.
func Memory(c Context) (free, total int, err error) {
	var f, t C.size_t
	err = failed(C.gompi_memory(C.uintptr_t(c), &f, &t))
	return int(f), int(t), err
}

// Locate returns the kind of memory at addr.
func Locate(addr uintptr) (Place, error) {
	var p C.gompi_place
	err := failed(C.gompi_place_of(C.uintptr_t(addr), &p))
	return Place{
		Device: p.kind == 2 && p.managed == 0, Pinned: p.kind == 1, Managed: p.managed != 0, Ordinal: int(p.device),
	}, err
}

// Alloc returns n > 0 zeroed bytes, using s.
func Alloc(c Context, n int, s Stream) (uintptr, error) {
	return value(C.gompi_alloc(C.uintptr_t(c), C.size_t(n), C.uintptr_t(s)))
}

// Free frees memory of Alloc when all work of the device is done.
func Free(c Context, addr uintptr) error {
	return failed(C.gompi_free(C.uintptr_t(c), C.uintptr_t(addr)))
}

// AllocHost returns n > 0 zeroed bytes of pinned host memory.
func AllocHost(c Context, n int) ([]byte, error) {
	var p unsafe.Pointer
	if err := failed(C.gompi_alloc_host(C.uintptr_t(c), C.size_t(n), &p)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// FreeHost frees memory of AllocHost.
func FreeHost(c Context, p unsafe.Pointer) error {
	return failed(C.gompi_free_host(C.uintptr_t(c), (*C.char)(p)))
}

// NewStream returns a stream that does not wait for others.
func NewStream(c Context) (Stream, error) {
	v, err := value(C.gompi_stream(C.uintptr_t(c)))
	return Stream(v), err
}

// CloseStream lets s finish its work and end.
func CloseStream(c Context, s Stream) error {
	return failed(C.gompi_stream_close(C.uintptr_t(c), C.uintptr_t(s)))
}

// SyncStream waits for all work of s, with e: asleep after a while.
func SyncStream(c Context, s Stream, e Event) error {
	return failed(C.gompi_stream_sync(C.uintptr_t(c), C.uintptr_t(s), C.uintptr_t(e)))
}

// StreamWait makes later work of s wait for e.
func StreamWait(c Context, s Stream, e Event) error {
	return failed(C.gompi_stream_wait(C.uintptr_t(c), C.uintptr_t(s), C.uintptr_t(e)))
}

// NewEvent returns an event.
func NewEvent(c Context) (Event, error) {
	v, err := value(C.gompi_event(C.uintptr_t(c)))
	return Event(v), err
}

// CloseEvent frees e.
func CloseEvent(c Context, e Event) error {
	return failed(C.gompi_event_close(C.uintptr_t(c), C.uintptr_t(e)))
}

// Record records in e the work enqueued on s so far.
func Record(c Context, e Event, s Stream) error {
	return failed(C.gompi_event_record(C.uintptr_t(c), C.uintptr_t(e), C.uintptr_t(s)))
}

// Done reports whether the work recorded in e is done.
func Done(c Context, e Event) (bool, error) {
	v, err := value(C.gompi_event_done(C.uintptr_t(c), C.uintptr_t(e)))
	return v != 0, err
}

// SyncEvent waits for the work recorded in e.
func SyncEvent(c Context, e Event) error {
	return failed(C.gompi_event_sync(C.uintptr_t(c), C.uintptr_t(e)))
}

// Copy enqueues a copy of n bytes on s. A host pointer that is not nil replaces the address beside
// it. With an event, which nothing else may use, Copy returns when the copy is done. Without one,
// host memory must be pinned and stay until then. A source may also be pageable: the driver reads
// it during the call.
func Copy(c Context, dst uintptr, hostDst unsafe.Pointer, src uintptr, hostSrc unsafe.Pointer, n int, s Stream,
	e Event) error {
	return failed(C.gompi_copy(C.uintptr_t(c), C.uintptr_t(dst), (*C.char)(hostDst),
		C.uintptr_t(src), (*C.char)(hostSrc), C.size_t(n), C.uintptr_t(s), C.uintptr_t(e)))
}

// Clear enqueues the zeroing of n bytes of device memory on s.
func Clear(c Context, addr uintptr, n int, s Stream) error {
	return failed(C.gompi_clear(C.uintptr_t(c), C.uintptr_t(addr), C.size_t(n), C.uintptr_t(s)))
}

// Launch enqueues a kernel on s, with grid blocks of block threads. Its only parameter is the
// struct at args, which is read during the call.
func Launch(c Context, k Kernel, grid, block int, args unsafe.Pointer, s Stream) error {
	return failed(C.gompi_launch(C.uintptr_t(c), C.uintptr_t(k), C.uint(grid), C.uint(block), (*C.char)(args),
		C.uintptr_t(s)))
}

// LoadModule compiles PTX for the device. Its error has the compiler's log.
func LoadModule(c Context, ptx string) (Module, error) {
	text := C.CString(ptx)
	defer C.free(unsafe.Pointer(text))
	const size = 8 << 10
	log := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(log))
	v, err := value(C.gompi_module(C.uintptr_t(c), text, log, size))
	if output := C.GoString(log); err != nil && output != "" {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return Module(v), err
}

// CloseModule unloads m.
func CloseModule(c Context, m Module) error {
	return failed(C.gompi_module_close(C.uintptr_t(c), C.uintptr_t(m)))
}

// FindKernel returns the kernel with a name.
func FindKernel(c Context, m Module, name string) (Kernel, error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	v, err := value(C.gompi_kernel(C.uintptr_t(c), C.uintptr_t(m), s))
	return Kernel(v), err
}
