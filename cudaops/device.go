package cudaops

import (
	"fmt"
	"sync"

	"gompi/cudaops/internal/driver"
	"gompi/internal/mem"
)

// A Device is a GPU: a mem.Space, whose Buffers only the GPU can load and store. Its methods may be
// called from any goroutine. They return when the work is done, and do not wait for Streams: their
// operands must be ready. Calls of different goroutines run at the same time.
type Device struct {
	name    string
	ordinal int
	what    driver.Description
	context func() (driver.Context, error) // retains the primary context at the first call

	mu     sync.Mutex
	idle   []*Stream        // for blocking calls
	blocks map[uintptr]bool // addresses from Alloc
}

var (
	_ mem.Pinner  = (*Device)(nil)
	_ mem.Batcher = (*Device)(nil)
)

func newDevice(ordinal int, what driver.Description) *Device {
	return &Device{
		name: fmt.Sprintf("cuda:%d", ordinal), ordinal: ordinal, what: what,
		context: sync.OnceValues(func() (driver.Context, error) { return driver.Retain(ordinal) }),
		blocks:  map[uintptr]bool{},
	}
}

// Name returns "cuda:" and the device's number in this process.
func (d *Device) Name() string { return d.name }

// Ordinal returns the device's number in this process, from 0.
func (d *Device) Ordinal() int { return d.ordinal }

// An Info describes a Device.
type Info struct {
	Model      string // "NVIDIA H200"
	Bus        string // PCI address, "0000:19:00.0": the same in all processes
	Memory     int    // bytes
	Capability [2]int // compute capability: 9, 0
	Processors int    // streaming multiprocessors
}

// Info describes the device, without touching it.
func (d *Device) Info() Info {
	w := d.what
	return Info{Model: w.Name, Bus: w.Bus, Memory: w.Memory, Capability: [2]int{w.Major, w.Minor},
		Processors: w.Processors}
}

// Identity returns the device's PCI address, its name in other processes, too.
func (d *Device) Identity() string { return "cuda " + d.what.Bus }

// Memory returns the free and the total bytes of the device's memory.
func (d *Device) Memory() (free, total int, err error) {
	ctx, err := d.context()
	if err == nil {
		free, total, err = driver.Memory(ctx)
	}
	return free, total, d.failed("memory", err)
}

// failed adds the device and the operation to err.
func (d *Device) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", d.name, what, err)
}

// borrow returns a stream that no other caller uses until giveBack.
func (d *Device) borrow() (*Stream, error) {
	d.mu.Lock()
	if n := len(d.idle); n > 0 {
		s := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		return s, nil
	}
	d.mu.Unlock()
	return d.NewStream()
}

func (d *Device) giveBack(s *Stream) {
	d.mu.Lock()
	d.idle = append(d.idle, s)
	d.mu.Unlock()
}
