// Package cudaops lets gompi use the memory of NVIDIA GPUs: a Device allocates and copies, and comm
// takes its Buffers like others.
//
//	devices, err := cudaops.Devices() // the error says why there are no devices
//	v, err := cudaops.Make[float32](devices[0], 1000)
//	err = c.Allreduce(ctx, v.Buffer(), v.Buffer(), comm.Sum)
//
// The first call of Devices opens the CUDA driver. A build needs nothing of CUDA, and a run only
// the driver. Programs built without cgo, or with the tag gompi_nocuda, have no devices. PyTorch
// and the CUDA runtime share a device's primary context. The first use of the device's memory
// creates the context, which stays for the life of the process.
package cudaops

import (
	"fmt"
	"sync"

	"gompi/cudaops/internal/driver"
	"gompi/internal/env"
	"gompi/internal/mem"
)

// The types that comm calls by the same names.
type (
	Buffer = mem.Buffer
	Type   = mem.Type
	Op     = mem.Op
	Scalar = mem.Scalar
)

// An Error is the answer of a function of the CUDA driver, of cuBLAS or of NCCL. Errors of this
// package wrap it.
//
//	Call string  // the function
//	Code int     // CUresult, cublasStatus_t or ncclResult_t
//	Name string  // of the code: CUDA_ERROR_OUT_OF_MEMORY
//	Text string  // the driver's explanation
type Error = driver.Error

var all = sync.OnceValues(func() ([]*Device, error) {
	n, err := driver.Load(env.String(env.LibCUDA))
	if err != nil {
		return nil, fmt.Errorf("no CUDA: %w", err)
	}
	devices := make([]*Device, n)
	for i := range devices {
		what, err := driver.Describe(i)
		if err != nil {
			return nil, fmt.Errorf("no CUDA: device %d: %w", i, err)
		}
		devices[i] = newDevice(i, what)
	}
	return devices, nil
})

func init() {
	mem.ProbeDevices(func() bool { return driver.Likely(env.String(env.LibCUDA)) })
}

// Devices returns the GPUs that this process may use, in CUDA's order, or one error that says why
// there are none. Devices does not touch the GPUs.
func Devices() ([]*Device, error) { return all() }

// Open returns a device of Devices by its number, always the same *Device.
func Open(ordinal int) (*Device, error) {
	devices, err := Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(devices) {
		return nil, fmt.Errorf("no device cuda:%d: want 0 to %d", ordinal, len(devices)-1)
	}
	return devices[ordinal], nil
}
