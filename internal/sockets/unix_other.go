//go:build !linux

package sockets

import (
	"errors"
	"net"
)

// SameUserConn refuses all connections: ranks run on Linux only.
func SameUserConn(*net.UnixConn) error { return errors.ErrUnsupported }

// Peer is for Linux only.
func Peer(*net.UnixConn) (user, pid int, err error) { return 0, 0, errors.ErrUnsupported }
