//go:build linux && cgo

package main

import (
	"errors"
	"runtime"
	"testing"
	"time"
)

// A call that only ever polls does not ask for Done.
func TestALimitPassesAlsoForACallThatPolls(t *testing.T) {
	ctx, cancel := within(checked, time.Millisecond)
	defer cancel()
	for late := time.Now().Add(time.Minute); ctx.Err() == nil; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("a minute has passed: want an error after a millisecond")
		}
	}
	if err := ctx.Err(); !errors.Is(err, errTimeout) {
		t.Errorf("got %v, want %v", err, errTimeout)
	}
}
