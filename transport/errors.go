package transport

import (
	"errors"
	"fmt"
)

// Reasons for Sink.Lost and Sink.Sent.
var (
	// ErrGone: the peer closed its side in good order and has sent all it had.
	ErrGone = errors.New("peer has left")
	// ErrCut: the connection ended without a goodbye.
	ErrCut = errors.New("connection cut")
	// ErrUnreachable: no connection could be made in the first place.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrRefused, an ErrUnreachable: no process listens where the peer did. It has left, or was
	// never to be reached there.
	ErrRefused = fmt.Errorf("%w", ErrUnreachable)
	// ErrClosed: this side was closed.
	ErrClosed = errors.New("transport closed")
	// ErrRecalled: the peer took back the memory that was read or written.
	ErrRecalled = errors.New("memory recalled")
	// ErrProtocol: the peer sent what no rank of this version sends.
	ErrProtocol = errors.New("protocol error")
)
