//go:build linux && cgo

package main

// #include "shim/core.h"
import "C"

import (
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"gompi/internal/core"
)

// codes are tried from the top.
var codes = [...]struct {
	err  error
	code C.int
}{
	{core.ErrArgument, C.GOMPI_ERR_ARGUMENT},
	{core.ErrMismatch, C.GOMPI_ERR_MISMATCH},
	{errTimeout, C.GOMPI_ERR_TIMEOUT},
	{errInterrupted, C.GOMPI_ERR_INTERRUPTED},
	{core.ErrRevoked, C.GOMPI_ERR_REVOKED},
	{core.ErrLeft, C.GOMPI_ERR_LEFT},
	{core.ErrTruncated, C.GOMPI_ERR_TRUNCATED},
}

// result returns the code of err and writes its message to text.
func result(err error, text *C.char) C.int {
	if err == nil {
		return C.GOMPI_OK
	}
	write(err.Error(), text)
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			return codes[i].code
		}
	}
	return C.GOMPI_ERR_OTHER
}

// write writes s to text, a buffer of GOMPI_TEXT bytes.
func write(s string, text *C.char) {
	room := unsafe.Slice((*byte)(unsafe.Pointer(text)), C.GOMPI_TEXT)
	n := copy(room[:len(room)-1], s)
	for n < len(s) && n > 0 && !utf8.RuneStart(s[n]) { // do not split a character
		n--
	}
	room[n] = 0
}

// caught turns a panic into an error: the process is not Go's to end.
func caught(code *C.int, text *C.char) {
	if p := recover(); p != nil {
		*code = result(panicked(p), text)
	}
}

func panicked(p any) error { return fmt.Errorf("panic in gompi: %v", p) }
