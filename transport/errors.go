package transport

import (
	"errors"
	"fmt"
)

// Reasons for Sink.Lost and Sink.Sent.
var (
	// ErrGone: the peer closed its side in good order and has sent all its frames.
	ErrGone = errors.New("peer has left")
	// ErrCut: the connection ended without a goodbye.
	ErrCut = errors.New("connection cut")
	// ErrUnreachable: no connection was ever established.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrRefused, an ErrUnreachable: no process listens at the peer's address. The peer has left,
	// or never listened there.
	ErrRefused = fmt.Errorf("%w", ErrUnreachable)
	// ErrClosed: this side was closed.
	ErrClosed = errors.New("transport closed")
	// ErrRecalled: the peer recalled the memory that was read or written.
	ErrRecalled = errors.New("memory recalled")
	// ErrProtocol: the peer sent data that no rank of this version sends.
	ErrProtocol = errors.New("protocol error")
)
