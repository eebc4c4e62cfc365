//go:build linux && cgo

package ucp

// #cgo LDFLAGS: -ldl
// #cgo noescape gompi_ucp_poll
// #cgo nocallback gompi_ucp_poll
// #cgo noescape gompi_ucp_send
// #cgo nocallback gompi_ucp_send
// #cgo noescape gompi_ucp_put
// #cgo nocallback gompi_ucp_put
// #cgo noescape gompi_ucp_write
// #cgo nocallback gompi_ucp_write
// #cgo noescape gompi_ucp_read
// #cgo nocallback gompi_ucp_read
// #cgo noescape gompi_ucp_arm
// #cgo nocallback gompi_ucp_arm
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"
)

// A Worker is UCX's worker of one rank, with its endpoints.
type Worker struct{ c *C.gompi_worker }

type ref = *C.gompi_message

// A Remote is memory of another rank.
type Remote = *C.gompi_remote

// The sizes equal shim.h's, or this does not compile.
var _ = [1]struct{}{}[HeaderSize-C.GOMPI_HEADER|ChunkSize-C.GOMPI_CHUNK|HelloSize-C.GOMPI_HELLO|int(Failed)-C.GOMPI_KIND_FAILED|Regions-C.GOMPI_REGIONS|PartSize-C.GOMPI_PART|PutSize-C.sizeof_gompi_put]

// Load opens the library, if not yet open.
var Load = sync.OnceValue(func() error {
	if C.gompi_ucp_foreign() != 0 {
		return errors.New("another library of this process has loaded UCX, in its own way")
	}
	return open("libucp.so.0")
})

// open looks up the functions of a library.
func open(library string) error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	if wrong := C.gompi_ucp_load(name); wrong != nil {
		return errors.New(C.GoString(wrong))
	}
	return nil
}

// Open opens a worker, and the library if Load has not.
func Open(o Options) (*Worker, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	tls, devices := C.CString(o.TLS), C.CString(o.Devices)
	defer C.free(unsafe.Pointer(tls))
	defer C.free(unsafe.Pointer(devices))
	w := new(Worker)
	slabs := C.uint32_t(math.MaxUint32)
	if o.Slabs > 0 {
		slabs = C.uint32_t(o.Slabs)
	}
	if wrong := C.gompi_ucp_open(&w.c, C.uint32_t(o.Rank), C.uint32_t(o.Size), tls, devices, flag(o.Memory),
		flag(o.Verbs), slabs); wrong != nil {
		return nil, fmt.Errorf("UCX_TLS=%s: %s", o.TLS, C.GoString(wrong))
	}
	return w, nil
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// status returns UCX's error with a code, nil for success.
func status(code C.int) error {
	if code >= 0 {
		return nil
	}
	return errors.New(C.GoString(C.gompi_ucp_text(code)))
}

// chars is b for C, which copies b. With this type cgo need not look for pointers in b, as with an
// unsafe.Pointer.
func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// Address returns this worker's address, for Connect of another process.
func (w *Worker) Address() []byte { return C.GoBytes(w.c.address, C.int(w.c.address_size)) }

// FD is readable when Poll has work, after Arm.
func (w *Worker) FD() int { return int(w.c.fd) }

// Header returns the memory for the header of the next First message to send.
func (w *Worker) Header() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&w.c.header)), HeaderSize)
}

// Connect creates the endpoint of a rank, and sends nothing.
func (w *Worker) Connect(rank int, address []byte) error {
	return status(C.gompi_ucp_connect(w.c, C.uint32_t(rank), chars(address), C.size_t(len(address))))
}

// Disconnect ends all transfers to a rank and drops its messages. UCX keeps trying to connect to a
// rank that has never answered.
func (w *Worker) Disconnect(rank int) { C.gompi_ucp_disconnect(w.c, C.uint32_t(rank)) }

// Admit accepts messages with the token in as sent by rank, and adds the token out to messages to
// rank.
func (w *Worker) Admit(rank int, in, out uint64) {
	C.gompi_ucp_admit(w.c, C.uint32_t(rank), C.uint64_t(in), C.uint64_t(out))
}

// SendHello sends a message without a token. Before Admit SendHello returns false, and has done
// nothing, if too much is under way to that rank.
func (w *Worker) SendHello(rank int, hello []byte) bool {
	return C.gompi_ucp_hello(w.c, C.uint32_t(rank), chars(hello), C.size_t(len(hello))) != 0
}

// Send sends a message with a copy of data, at most ChunkSize, after Admit. Send returns false, and
// has done nothing, if too much is under way to that rank.
func (w *Worker) Send(rank int, kind Kind, data []byte) bool {
	return C.gompi_ucp_send(w.c, C.uint32_t(rank), C.int(kind), chars(data), C.size_t(len(data))) != 0
}

// Register makes b, which must not be Go's memory, region id, which must be unused.
func (w *Worker) Register(id int, b []byte) error {
	return status(C.gompi_ucp_register(w.c, C.uint32_t(id), chars(b), C.size_t(len(b))))
}

// Deregister undoes Register. Deregister returns false, and has done nothing, if UCX may still read
// or write the region.
func (w *Worker) Deregister(id int) bool {
	return C.gompi_ucp_deregister(w.c, C.uint32_t(id)) != 0
}

// Recall makes all places of this rank invalid that peers have: later puts to them are dropped.
func (w *Worker) Recall() { w.c.recalls++ }

// Recalls returns the number of calls of Recall.
func (w *Worker) Recalls() uint64 { return uint64(w.c.recalls) }

// Put sends a Put message with data, at most PartSize, of region id, without a copy: data must stay
// unchanged until stored by the peer. Put returns false, and has done nothing, if too much is under
// way to that rank.
func (w *Worker) Put(rank, id int, data []byte) bool {
	return C.gompi_ucp_put(w.c, C.uint32_t(rank), C.uint32_t(id), chars(data), C.size_t(len(data))) != 0
}

// Key returns the key for a Remote of region id, nil if the region does not exist.
func (w *Worker) Key(id int) []byte {
	var key [MostKey]byte
	n := C.gompi_ucp_key(w.c, C.uint32_t(id), chars(key[:]), MostKey)
	return slices.Clone(key[:n])
}

// Remote returns a region of a rank by a key from there, nil if UCX cannot access the region.
func (w *Worker) Remote(rank int, key []byte) Remote {
	return C.gompi_ucp_remote(w.c, C.uint32_t(rank), chars(key))
}

// Forget frees m. No access to m may be under way.
func (w *Worker) Forget(m Remote) { C.gompi_ucp_forget(w.c, m) }

// Write begins to store a copy of src, at most ChunkSize, at an address of m. Write returns false,
// and has done nothing, if too much is under way.
func (w *Worker) Write(m Remote, at uintptr, src []byte) bool {
	return C.gompi_ucp_write(m, C.uint64_t(at), chars(src), C.size_t(len(src))) != 0
}

// Read begins to copy n bytes, at most ChunkSize, from an address of m. A message Done returns the
// bytes and number, which is not 0. Read returns false as Write does.
func (w *Worker) Read(m Remote, at uintptr, n int, number uint64) bool {
	return C.gompi_ucp_read(m, C.uint64_t(at), C.size_t(n), C.uint64_t(number)) != 0
}

// Settle begins to wait until all writes to a rank are stored there. A message Done with number,
// which is not 0, reports the end.
func (w *Worker) Settle(rank int, number uint64) {
	C.gompi_ucp_settle(w.c, C.uint32_t(rank), C.uint64_t(number))
}

// Poll makes progress and returns UCX's measure of progress.
func (w *Worker) Poll() int { return int(C.gompi_ucp_poll(w.c)) }

// Next returns the next message. Call Done for the message.
func (w *Worker) Next() (m Message, ok bool) {
	c := w.c.ready
	if c == nil {
		return m, false
	}
	w.c.ready = c.next
	m = Message{Kind: Kind(c.prefix.kind), From: int(c.prefix.from), Err: status(c.status), Dropped: c.dropped != 0,
		Number: uint64(c.prefix.token), ref: c}
	m.Head = unsafe.Slice((*byte)(unsafe.Pointer(&c.head)), int(c.head_size))
	if m.Kind == Hello {
		w.c.hellos--
	}
	if m.Err == nil && c.size > 0 {
		m.Data = unsafe.Slice((*byte)(unsafe.Pointer(c.data)), int(c.size))
	}
	return m, true
}

// Done frees a message's memory.
func (w *Worker) Done(m Message) { m.ref.next, w.c.done = w.c.done, m.ref }

// Arm makes FD readable when Poll has work. Arm returns false if Poll has work already, or if a
// message has arrived.
func (w *Worker) Arm() bool { return C.gompi_ucp_arm(w.c) != 0 }

// Flush begins to wait until all sent messages have reached their hosts. Until then Outstanding is
// not 0.
func (w *Worker) Flush() { C.gompi_ucp_flush(w.c) }

// Lanes returns the transports and devices that UCX uses for messages to a rank, as
// "rc_verbs/mlx5_0:1".
func (w *Worker) Lanes(rank int) []string {
	info := C.gompi_ucp_info(w.c, C.uint32_t(rank))
	defer C.free(unsafe.Pointer(info)) // nil is none
	return lanes(C.GoString(info))
}

// Outstanding returns the number of operations under way, without operations to ranks that were
// disconnected before they answered.
func (w *Worker) Outstanding() int { return int(w.c.outstanding - w.c.stuck) }

// Unauthenticated returns the number of messages dropped for lack of a valid token.
func (w *Worker) Unauthenticated() uint64 { return uint64(w.c.unauthenticated) }

// Close ends everything at once. It returns the number of operations that UCX did not complete, and
// the number of these to ranks that never answered. If there are any, the worker and the
// operations' memory are not freed.
func (w *Worker) Close() (left, unanswered int) {
	if left = int(C.gompi_ucp_close(w.c)); left > 0 {
		unanswered = int(w.c.stuck)
	}
	w.c = nil
	return left, unanswered
}
