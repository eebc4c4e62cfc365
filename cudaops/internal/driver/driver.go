// Package driver calls the CUDA driver. The first call opens the driver's library, so that
// everything else runs without one. The package knows contexts, addresses and handles; package
// cudaops builds memory and streams on them.
//
// Functions may be called from any goroutine, on any thread. Functions with a Context restore the
// thread's current context.
package driver

import "fmt"

// Handles of the driver, 0 for none.
type (
	Context uintptr
	Stream  uintptr
	Event   uintptr
	Module  uintptr
	Kernel  uintptr
	BLAS    uintptr
	NCCL    uintptr // a communicator
)

// An Error is the failure of a function of the CUDA driver, of cuBLAS or of NCCL.
type Error struct {
	Call string // the function
	Code int    // CUresult, cublasStatus_t or ncclResult_t
	Name string // of the code: CUDA_ERROR_OUT_OF_MEMORY
	Text string // the driver's explanation
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// NotFound is the only code with a meaning for callers.
const NotFound = 500

// A Description describes a device.
type Description struct {
	Name         string // "NVIDIA H200"
	Bus          string // PCI address: "0000:19:00.0"
	Memory       int    // bytes
	Processors   int    // streaming multiprocessors
	Major, Minor int    // compute capability
}

// A Place is the kind of memory at an address.
type Place struct {
	Device bool // device memory
	Pinned bool // host memory that CUDA knows; if neither is set, ordinary host memory
	// Managed memory migrates: both processor and device can use it.
	Managed bool
	Ordinal int // the device, for Device and Managed
}

// An Operand is a matrix in device memory for Multiply.
type Operand struct {
	Addr       uintptr
	Stride     int // elements from one column to the next
	Transposed bool
}

// A NCCLID is the id by which all ranks join a communicator of NCCL.
type NCCLID [128]byte

// A Collective is a collective of NCCL.
type Collective int

// The collectives.
const (
	AllReduce Collective = iota
	Reduce
	Broadcast
	ReduceScatter
	AllGather
)

// A Part is the data to and from another rank: addresses in device memory, and bytes.
type Part struct {
	Out, In         uintptr
	OutSize, InSize uintptr
}
