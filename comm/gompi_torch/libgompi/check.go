//go:build linux && cgo

package main

// #include <stdint.h>
// int64_t gompi_core_ask(int64_t milliseconds);
import "C"

import (
	"context"
	"errors"
	"time"

	"gompi/internal/core"
)

// errInterrupted is the error of a call that gompi_set_check's function has ended.
var errInterrupted = errors.New("interrupted")

// checked is the context of blocking calls. A call that waits for long asks the function that
// gompi_set_check has set for its thread. A goroutine that C has called stays on that thread.
var checked = core.WithCheck(context.Background(), func(waited time.Duration) (time.Duration, error) {
	next := int64(C.gompi_core_ask(C.int64_t(waited.Milliseconds())))
	if next < 0 {
		return 0, errInterrupted
	}
	return time.Duration(next) * time.Millisecond, nil
})

// A place is a call site that gompi_place has named: the contexts of calls from there.
type place struct{ checked, background context.Context }

var places table[place]

func newPlace(name string) int64 {
	return places.add(place{core.AtPlace(checked, name), core.AtPlace(context.Background(), name)})
}

// bases returns the contexts of calls at the place with a number; 0 is no place.
func bases(number int64) place {
	if p, ok := places.find(number); ok {
		return p
	}
	return place{checked, context.Background()}
}
