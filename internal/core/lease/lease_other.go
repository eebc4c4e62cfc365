//go:build !linux

package lease

import (
	"errors"
	"runtime"
	"sync"
)

// New fails: there is no memory that a forked child finds zeroed.
func New(sync.Locker) (*Lease, error) { return nil, errors.ErrUnsupported }

func yieldProcessor() { runtime.Gosched() }
