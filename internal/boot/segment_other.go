//go:build !linux

package boot

import (
	"context"
	"errors"
)

// A segmentSocket exists on Linux only: elsewhere ranks share no segment.
type segmentSocket struct{}

func listenSegment() segmentSocket { return segmentSocket{} }

func (segmentSocket) name() string { return "" }

func (segmentSocket) close() {}

func (in *Info) share(context.Context, segmentSocket, string) error { return errors.ErrUnsupported }
