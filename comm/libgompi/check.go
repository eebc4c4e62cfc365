//go:build linux && cgo

package main

// #include <stdint.h>
// int64_t gompi_core_ask(int64_t milliseconds);
import "C"

import (
	"context"
	"errors"
	"time"

	"gompi/comm"
)

// errInterrupted is the error of a call that gompi_set_check's function has ended.
var errInterrupted = errors.New("interrupted")

// checked is the context of calls that block: those that wait for long ask what gompi_set_check has
// set for their thread. A goroutine that C has called stays on that thread.
var checked = comm.WithCheck(context.Background(), func(waited time.Duration) (time.Duration, error) {
	next := int64(C.gompi_core_ask(C.int64_t(waited.Milliseconds())))
	if next < 0 {
		return 0, errInterrupted
	}
	return time.Duration(min(next, maxMilliseconds)) * time.Millisecond, nil
})
