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

// errTimeout is wrapped by what a limit that has passed returns.
var errTimeout = errors.New("took longer than the limit")

const maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

// A limit is the context of a call that may take so long. Its time begins when somebody asks for
// Done, which comm does when it has waited for some microseconds: a short call starts no timer.
type limit struct {
	context.Context
	d time.Duration

	mu    sync.Mutex
	done  chan struct{} // nil until somebody has asked
	timer *time.Timer
	err   error
}

// within returns the context of a call that may take so long.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	l := &limit{Context: checked, d: d}
	return l, l.stop
}

func (l *limit) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		l.timer = time.AfterFunc(l.d, l.pass)
	}
	return l.done
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
	return l.err
}

// stop is called when the call is over.
func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
