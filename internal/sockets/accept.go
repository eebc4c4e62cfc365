// Package sockets adds to package net: the addresses by which other hosts reach a rank
// (address.go), an Acceptor for connections whose callers have yet to authenticate themselves,
// descriptors passed through Unix sockets, the process at the other end of a Unix socket, system
// calls on non-blocking sockets of TCP (tcp_linux.go), and a list of gompi's sockets (forked.go).
package sockets

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// retryDelay is the time that Serve waits after a failed accept, when the process lacks descriptors
// or memory.
const retryDelay = 100 * time.Millisecond

// An Acceptor decides which connections are admitted. Until its caller has authenticated itself a
// connection is pending. Pending connections are limited in number and in time, so that they cannot
// keep legitimate callers out; nor does a temporary lack of descriptors or memory.
type Acceptor struct {
	// MaxPending is the number of connections that may be authenticating at once: one more closes
	// the oldest. It should exceed the number of legitimate callers that come at the same time.
	MaxPending int
	// Timeout bounds the authentication of a caller.
	Timeout time.Duration
	// Authenticate authenticates a caller, in a goroutine of its own. If it returns a function, the
	// caller is admitted and the function runs in that goroutine. If it returns nil, the
	// connection is closed. Authenticate must not change the connection's deadline.
	Authenticate func(net.Conn) (admitted func())
	// OnError is called with the first error of the listener. It may be nil.
	OnError func(error)
}

// Serve accepts connections until ln is closed.
func (a *Acceptor) Serve(ln net.Listener) {
	var s pending
	reported := a.OnError == nil
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !reported {
				reported = true
				a.OnError(err)
			}
			s.shrink(0) // the oldest has had the most time; closing it frees a descriptor
			time.Sleep(retryDelay)
			continue
		}
		s.add(conn, a.Timeout)
		s.shrink(a.MaxPending)
		go func() { // ends when the caller is turned away, or when admitted returns
			admitted := a.Authenticate(conn)
			s.strike(conn)
			if admitted == nil {
				conn.Close()
				return
			}
			admitted()
		}()
	}
}

// pending are the connections that have not authenticated yet, the oldest first. To turn one away
// sets a deadline in the past, which fails the read or write in Authenticate. A caller that has
// authenticated meanwhile keeps its connection.
type pending struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (s *pending) add(conn net.Conn, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn.SetDeadline(time.Now().Add(limit))
	s.conns = append(s.conns, conn)
}

// shrink turns the oldest connection away if there are more than most.
func (s *pending) shrink(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > most {
		s.conns[0].SetDeadline(time.Unix(1, 0))
		s.conns = slices.Delete(s.conns, 0, 1)
	}
}

// strike removes conn from the list, and clears its deadline.
func (s *pending) strike(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(c net.Conn) bool { return c == conn })
	conn.SetDeadline(time.Time{})
}
