// Package driver calls the CUDA driver, which it opens when first asked: a
// machine without it runs everything else. It knows contexts, addresses and
// handles; package cudaops makes memory and streams of them.
//
// Functions may be called from any goroutine, on any thread. Those that take a
// Context leave the thread's current context as it was.
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

// An Error is what a function of the CUDA driver, of cuBLAS or of NCCL answered.
type Error struct {
	Call string // the function
	Code int    // CUresult, cublasStatus_t or ncclResult_t
	Name string // of the code: CUDA_ERROR_OUT_OF_MEMORY
	Text string // the driver's explanation
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// NotFound is the code that callers tell apart.
const NotFound = 500

// A Description tells what a device is.
type Description struct {
	Name         string // "NVIDIA H200"
	Bus          string // PCI address: "0000:19:00.0"
	Memory       int    // bytes
	Processors   int    // streaming multiprocessors
	Major, Minor int    // compute capability
}

// A Place says where an address is.
type Place struct {
	Device bool // device memory
	Pinned bool // host memory that CUDA knows; if neither, it is ordinary host memory
	// Managed memory moves by itself: both processor and device can use it.
	Managed bool
	Ordinal int // the device, for Device and Managed
}

// An Operand is a matrix in device memory for Multiply.
type Operand struct {
	Addr       uintptr
	Stride     int // elements from one column to the next
	Transposed bool
}

// A NCCLID is what all ranks need to join a communicator of NCCL.
type NCCLID [128]byte

// A Collective is one of NCCL's.
type Collective int

// The collectives.
const (
	AllReduce Collective = iota
	Reduce
	Broadcast
	ReduceScatter
	AllGather
)

// A Part is what goes to another rank and comes from it: addresses in device memory,
// and bytes.
type Part struct {
	Out, In         uintptr
	OutSize, InSize uintptr
}
