//go:build linux && cgo

package pmix

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include <sys/auxv.h>
// #include "pmix.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"unsafe"
)

// library is the file name of PMIx's library, of version 3 and later.
const library = "libpmix.so.2"

// Init opens the library and connects to the launcher. A Launcher with an error is connected, too.
func Init() (*Launcher, error) {
	// The launcher's own library speaks as the launcher does.
	theirs := ""
	if C.getauxval(C.AT_SECURE) == 0 { // with raised privileges the user's processes do not choose it
		theirs = ofLauncher(os.Getppid())
	}
	if err := open(theirs, library); err != nil {
		return nil, err
	}
	var rank, size, local, program C.uint32_t
	if err := failure("PMIx_Init", C.gompi_pmix_init(&rank)); err != nil {
		return nil, err
	}
	leaveToChildren()
	err := failure("PMIx_Get of the number of ranks", number("pmix.job.size", 1, &size))
	number("pmix.local.size", 1, &local) // a launcher may not tell it, nor the program
	number("pmix.appnum", 0, &program)
	l := &Launcher{Rank: int(rank), Size: int(size), LocalSize: int(local), Program: int(program)}
	if err == nil && l.Rank >= l.Size {
		err = fmt.Errorf("PMIx: rank %d of %d: want a rank from 0 to one less than the size", l.Rank, l.Size)
	}
	return l, err
}

// open opens the first of the libraries that can be opened.
func open(paths ...string) error {
	var wrong error
	for _, path := range paths {
		if path == "" {
			continue
		}
		name := C.CString(path)
		defer C.free(unsafe.Pointer(name))
		text := C.gompi_pmix_load(name)
		if text == nil {
			return nil
		}
		wrong = fmt.Errorf("%w: %s: install it (Debian's libpmix2), or have LD_LIBRARY_PATH name its folder",
			ErrLibrary, C.GoString(text))
		C.free(unsafe.Pointer(text))
	}
	return wrong
}

var mapped = regexp.MustCompile(`(?m) (/.*/` + regexp.QuoteMeta(library) + `[.0-9]*)$`)

// ofLauncher returns the path of the library in a process, or in an ancestor, "" if there is none.
// Processes of another user do not choose the library.
func ofLauncher(pid int) string {
	dir := fmt.Sprintf("/proc/%d", pid)
	st, err := os.Stat(dir)
	if err != nil || pid <= 1 || int(st.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
		return ""
	}
	maps, _ := os.ReadFile(dir + "/maps") // an error means that the process is just ending
	if m := mapped.FindSubmatch(maps); m != nil {
		return string(m[1])
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return ""
	}
	parent, _ := strconv.Atoi(string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[1])) // the kernel's
	return ofLauncher(parent)
}

func number(key string, ofJob C.int, n *C.uint32_t) C.int {
	name := C.CString(key)
	defer C.free(unsafe.Pointer(name))
	return C.gompi_pmix_number(name, ofJob, n)
}

// failure returns the error of a call of the library, or nil.
func failure(what string, status C.int) error {
	if status == 0 {
		return nil
	}
	return errors.New(what + ": " + C.GoString(C.gompi_pmix_text(status)))
}

// Put gives all ranks a value, from the next Barrier on.
func (l *Launcher) Put(key, value string) error {
	name, text := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(text))
	return failure("PMIx_Put", C.gompi_pmix_put(name, text))
}

// Barrier waits for all ranks.
func (l *Launcher) Barrier() error { return failure("PMIx_Fence", C.gompi_pmix_fence()) }

// Get returns a value that rank 0 has Put.
func (l *Launcher) Get(key string) (string, error) {
	name := C.CString(key)
	defer C.free(unsafe.Pointer(name))
	var text *C.char
	if err := failure("PMIx_Get", C.gompi_pmix_get(name, 0, &text)); err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text), nil
}

func finalize() error { return failure("PMIx_Finalize", C.gompi_pmix_finalize()) }

func abort(code int, reason string) error {
	text := C.CString(reason)
	defer C.free(unsafe.Pointer(text))
	return failure("PMIx_Abort", C.gompi_pmix_abort(C.int(code), text))
}
