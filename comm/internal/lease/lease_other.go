//go:build !linux

package lease

import "errors"

// New fails: there is no memory that a forked child finds zeroed.
func New() (*Lease, error) { return nil, errors.ErrUnsupported }
