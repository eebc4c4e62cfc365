//go:build !linux

package sockets

import (
	"errors"
	"net"
)

// SameUserConn refuses all: ranks run on Linux only.
func SameUserConn(*net.UnixConn) error { return errors.ErrUnsupported }
