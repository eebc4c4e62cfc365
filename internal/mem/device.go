package mem

import "sync"

// An Accelerator is the Space of a device that works asynchronously. Work of the same device
// in other processes of the host can reach its memory, too.
type Accelerator interface {
	Space
	Exporter
	// Identity names the device in all processes of the host: its PCI address.
	Identity() string
	// OpenStream returns a Stream whose work waits for no other Stream. Close releases it.
	OpenStream() (Stream, error)
}

// A Stream is a queue of work of an Accelerator, done in the order given, as a stream in CUDA.
// Methods enqueue work and return before it is done. Until then the caller leaves the Buffers
// alone, and host memory among them must be pinned. One goroutine at a time uses a Stream.
type Stream interface {
	// Copy and Reduce enqueue what a Space's do, and Divide what the function Divide does.
	Copy(dst, src Buffer) error
	Reduce(op Op, dst Buffer, srcs ...Buffer) error
	Divide(b Buffer, n int) error
	// NewEvent returns an Event that can be set in this Stream.
	NewEvent() (Event, error)
	// Sync waits until all work is done. Its error may be that of any earlier work.
	Sync() error
	// Close waits until all work is done and releases the Stream.
	Close() error
}

var probes struct {
	sync.Mutex
	all []func() bool
}

// ProbeDevices is called by the init function of a package with Accelerators. may reports
// whether this machine seems to have some, without touching them.
func ProbeDevices(may func() bool) {
	probes.Lock()
	defer probes.Unlock()
	probes.all = append(probes.all, may)
}

// MayHaveDevices reports whether Buffers of this process may be in the memory of an
// Accelerator.
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
