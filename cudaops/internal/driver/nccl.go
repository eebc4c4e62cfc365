//go:build linux && cgo && !gompi_nocuda

package driver

// #include <stdlib.h>
// #include "nccl.h"
import "C"

import (
	"errors"
	"strings"
	"sync"
	"unsafe"
)

// ncclNames are the names of NCCL's codes.
var ncclNames = []string{
	"ncclSuccess", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidArgument",
	"ncclInvalidUsage", "ncclRemoteError", "ncclInProgress", "ncclTimeout",
}

// ncclFailed returns r's error, nil for success. It is NCCL's, with its last message, or the
// driver's if the context could not be made current.
func ncclFailed(c NCCL, r C.gompi_result) error {
	if r.code == 0 || !strings.HasPrefix(C.GoString(r.call), "nccl") {
		return failed(r)
	}
	e := &Error{Call: C.GoString(r.call), Code: int(r.code), Name: "unknown error",
		Text: C.GoString(C.gompi_nccl_error_text(r.code))}
	if e.Code > 0 && e.Code < len(ncclNames) {
		e.Name = ncclNames[e.Code]
	}
	if last := strings.TrimSpace(C.GoString(C.gompi_nccl_last_error(C.uintptr_t(c)))); last != "" {
		e.Text += ": " + last
	}
	return e
}

var loadNCCL struct {
	sync.Once
	err error
}

// LoadNCCL opens the named library as NCCL, or the first of the usual names if it is "", once. It
// returns its version, 21803 for 2.18.3.
func LoadNCCL(library string) (version int, err error) {
	loadNCCL.Do(func() { loadNCCL.err = openNCCL(library) })
	return int(C.gompi_nccl_version()), loadNCCL.err
}

func openNCCL(library string) error {
	names := []string{library}
	if library == "" {
		names = []string{"libnccl.so.2", "libnccl.so"}
	}
	var wrong []error
	for _, name := range names {
		s := C.CString(name)
		defer C.free(unsafe.Pointer(s))
		why := C.gompi_nccl_load(s)
		if why == nil {
			return nil
		}
		wrong = append(wrong, errors.New(C.GoString(why)))
	}
	return wrong[0]
}

// NewNCCLID returns an id by which all ranks join a new communicator.
func NewNCCLID(c Context) (id NCCLID, err error) {
	err = ncclFailed(0, C.gompi_nccl_id(C.uintptr_t(c), (*C.char)(unsafe.Pointer(&id))))
	return id, err
}

// JoinNCCL begins to make the device a rank of the communicator with an id. The communicator is
// ready when NCCLBusy returns false.
func JoinNCCL(c Context, id *NCCLID, rank, size int) (NCCL, error) {
	r := C.gompi_nccl_join(C.uintptr_t(c), C.int(size), (*C.char)(unsafe.Pointer(id)), C.int(rank))
	return NCCL(r.value), ncclFailed(0, r)
}

// NCCLBusy reports whether the last call of n is still in progress, or the error of n. Until the
// call is complete, call nothing else of n and do not wait for its stream.
func NCCLBusy(c Context, n NCCL) (bool, error) {
	r := C.gompi_nccl_state(C.uintptr_t(c), C.uintptr_t(n))
	return r.value != 0, ncclFailed(n, r)
}

// AbortNCCL ends the work of n, and n.
func AbortNCCL(c Context, n NCCL) error {
	return ncclFailed(0, C.gompi_nccl_abort(C.uintptr_t(c), C.uintptr_t(n)))
}

// FinalizeNCCL begins to end n, with all its ranks.
func FinalizeNCCL(c Context, n NCCL) error {
	return ncclFailed(n, C.gompi_nccl_finalize(C.uintptr_t(c), C.uintptr_t(n)))
}

// DestroyNCCL frees a finalized communicator.
func DestroyNCCL(c Context, n NCCL) error {
	return ncclFailed(0, C.gompi_nccl_destroy(C.uintptr_t(c), C.uintptr_t(n)))
}

// Collect begins to enqueue a collective of count elements on s: per block, if there are blocks.
// Types and operators are NCCL's numbers.
func Collect(c Context, n NCCL, what Collective, send, recv uintptr, count, typ, op, root int, s Stream) error {
	return ncclFailed(n, C.gompi_nccl_collective(C.uintptr_t(c), C.uintptr_t(n), C.int(what), C.uintptr_t(send),
		C.uintptr_t(recv),
		C.size_t(count), C.int(typ), C.int(op), C.int(root), C.uintptr_t(s)))
}

// ExchangeNCCL begins to enqueue a send and a receive for each rank on s, except empty ones.
func ExchangeNCCL(c Context, n NCCL, parts []Part, s Stream) error {
	return ncclFailed(n, C.gompi_nccl_exchange(C.uintptr_t(c), C.uintptr_t(n),
		(*C.gompi_part)(unsafe.Pointer(unsafe.SliceData(parts))), C.int(len(parts)), C.uintptr_t(s)))
}
