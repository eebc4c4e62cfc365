//go:build !linux || !cgo || gompi_nocuda

package driver

import (
	"errors"
	"unsafe"
)

var errBuild = errors.New("this program was built without CUDA: want linux, CGO_ENABLED=1 and no tag gompi_nocuda")

// Load fails: there is no driver. So the functions below are never called.
func Load(string) (int, error) { return 0, errBuild }

// Loaded returns false.
func Loaded() bool { return false }

// Likely returns false.
func Likely(string) bool { return false }

// The rest exists so that package cudaops compiles.
func Describe(int) (Description, error)           { return Description{}, errBuild }
func Retain(int) (Context, error)                 { return 0, errBuild }
func Memory(Context) (int, int, error)            { return 0, 0, errBuild }
func Locate(uintptr) (Place, error)               { return Place{}, errBuild }
func Alloc(Context, int, Stream) (uintptr, error) { return 0, errBuild }
func Free(Context, uintptr) error                 { return errBuild }
func AllocHost(Context, int) ([]byte, error)      { return nil, errBuild }
func FreeHost(Context, unsafe.Pointer) error      { return errBuild }
func NewStream(Context) (Stream, error)           { return 0, errBuild }
func CloseStream(Context, Stream) error           { return errBuild }
func SyncStream(Context, Stream, Event) error     { return errBuild }
func StreamWait(Context, Stream, Event) error     { return errBuild }
func NewEvent(Context) (Event, error)             { return 0, errBuild }
func CloseEvent(Context, Event) error             { return errBuild }
func Record(Context, Event, Stream) error         { return errBuild }
func Done(Context, Event) (bool, error)           { return false, errBuild }
func SyncEvent(Context, Event) error              { return errBuild }
func Copy(Context, uintptr, unsafe.Pointer, uintptr, unsafe.Pointer, int, Stream, Event) error {
	return errBuild
}
func Launch(Context, Kernel, int, int, unsafe.Pointer, Stream) error { return errBuild }
func Clear(Context, uintptr, int, Stream) error                      { return errBuild }
func LoadModule(Context, string) (Module, error)                     { return 0, errBuild }
func CloseModule(Context, Module) error                              { return errBuild }
func FindKernel(Context, Module, string) (Kernel, error)             { return 0, errBuild }
func LoadBLAS(string) error                                          { return errBuild }
func NewBLAS(Context, Stream) (BLAS, error)                          { return 0, errBuild }
func CloseBLAS(Context, BLAS) error                                  { return errBuild }
func Multiply(Context, BLAS, int, int, int, Operand, Operand, float32, Operand) error {
	return errBuild
}
func LoadNCCL(string) (int, error)                      { return 0, errBuild }
func NewNCCLID(Context) (NCCLID, error)                 { return NCCLID{}, errBuild }
func JoinNCCL(Context, *NCCLID, int, int) (NCCL, error) { return 0, errBuild }
func NCCLBusy(Context, NCCL) (bool, error)              { return false, errBuild }
func AbortNCCL(Context, NCCL) error                     { return errBuild }
func FinalizeNCCL(Context, NCCL) error                  { return errBuild }
func DestroyNCCL(Context, NCCL) error                   { return errBuild }
func ExchangeNCCL(Context, NCCL, []Part, Stream) error  { return errBuild }
func Collect(Context, NCCL, Collective, uintptr, uintptr, int, int, int, int, Stream) error {
	return errBuild
}
