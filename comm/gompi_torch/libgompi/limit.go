//go:build linux && cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// errTimeout is wrapped by the error of a limit that has passed.
var errTimeout = errors.New("took longer than the limit")

const maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

// A limit is the context of a call that may take at most d. Its time begins at core's first Done,
// or after several Errs. Core asks for Done when it sleeps, and for Err repeatedly while it polls,
// which it may do forever beside the messages of other threads. So a short call starts no timer.
type limit struct {
	context.Context
	d time.Duration

	mu    sync.Mutex
	asked int           // for Err
	done  chan struct{} // nil until the time has begun
	timer *time.Timer
	err   error
}

// often is the number of calls of Err that begin the time. Core polls 64 times between two of them.
const often = 16

// within returns a context in base that ends after d.
func within(base context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	l := &limit{Context: base, d: d}
	return l, l.stop
}

func (l *limit) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	return l.done
}

func (l *limit) begin() {
	if l.done == nil {
		l.done = make(chan struct{})
		l.timer = time.AfterFunc(l.d, l.pass)
	}
}

func (l *limit) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = fmt.Errorf("%w, %v", errTimeout, l.d)
	close(l.done)
}

func (l *limit) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked++; l.asked == often {
		l.begin()
	}
	return l.err
}

// stop ends the timer when the call is over.
func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
