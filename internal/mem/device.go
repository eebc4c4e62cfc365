package mem

import "sync"

// A Stream is a device's queue of work in order, like a CUDA stream, for one goroutine at a time.
type Stream interface {
	// NewEvent returns an Event that can be set in this Stream.
	NewEvent() (Event, error)
	// Sync waits until all work is done. Its error may come from any earlier work.
	Sync() error
}

var probes struct {
	sync.Mutex
	all []func() bool
}

// ProbeDevices is called by the init function of a package with Spaces of devices. may reports
// whether this machine seems to have such devices, without touching them.
func ProbeDevices(may func() bool) {
	probes.Lock()
	defer probes.Unlock()
	probes.all = append(probes.all, may)
}

// MayHaveDevices reports whether Buffers of this process may be in the memory of devices.
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
