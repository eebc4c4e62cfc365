package mem

import "sync"

// An Accelerator is the memory of a device that works by itself, and that the
// device's work in other processes of the host reaches, too.
type Accelerator interface {
	Space
	Exporter
	// Identity names the device in all processes of the host: its PCI address.
	Identity() string
	// NewQueue returns a Queue that waits for no other. Close gives it back.
	NewQueue() (Queue, error)
}

// A Queue is work of an Accelerator, done in the order given: calls put it there
// and return before it is done. Buffers stay as they are until then, and host
// memory among them is pinned. One goroutine at a time uses a Queue.
type Queue interface {
	// Copy and Reduce do what a Space does, and Divide what the function does.
	Copy(dst, src Buffer) error
	Reduce(op Op, dst Buffer, srcs ...Buffer) error
	Divide(b Buffer, n int) error
	// NewMark returns a Mark for points of the Queue's work.
	NewMark() (Mark, error)
	// After makes work put on the Queue from now on wait for the point where m, of
	// this Queue or of another that its device knows, is now.
	After(m Mark) error
	// Sync waits until all is done. An error may come from work of long ago.
	Sync() error
	// Hold keeps what is put on the Queue from now on from beginning.
	Hold() (Hold, error)
	// CanHold reports whether the device can stop its Queues, so that Hold works. When
	// first asked it may wait for the device.
	CanHold() bool
	// Close waits until all is done and gives the Queue back.
	Close() error
}

// A Hold is a place in the work of a Queue, where it stops until Release. While it
// does, nobody must free memory of the device, or wait for all of its work: that may
// take the driver from whoever would release.
type Hold interface {
	// Reached waits until the work before is done.
	Reached() error
	// Release lets the work behind begin. It is called once, and ends the Hold.
	Release()
}

var probes struct {
	sync.Mutex
	all []func() bool
}

// ProbeDevices is for the init function of a package that has Accelerators: may
// tells whether this machine looks as if it had some, without touching them.
func ProbeDevices(may func() bool) {
	probes.Lock()
	defer probes.Unlock()
	probes.all = append(probes.all, may)
}

// MayHaveDevices reports whether Buffers of this process may be in the memory of
// Accelerators. If not, none is.
func MayHaveDevices() bool {
	probes.Lock()
	defer probes.Unlock()
	for _, may := range probes.all {
		if may() {
			return true
		}
	}
	return false
}
