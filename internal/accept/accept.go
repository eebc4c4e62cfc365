// Package accept takes in connections whose callers have yet to prove who they are.
// Whatever such strangers do, and whatever the system lacks for a while, who does
// belong here gets in.
package accept

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// rest is how long no connection is accepted after an error: descriptors or memory
// are exhausted.
const rest = 100 * time.Millisecond

// A Door says who is let in, and how long strangers are borne.
type Door struct {
	// Strangers is how many may be proving themselves at once: the oldest makes room
	// for one more. It should be larger than the number of those who may rightly come
	// at the same time.
	Strangers int
	// Time is how long each has.
	Time time.Duration
	// Greet finds out who has come, in a goroutine of its own. It returns what is to be
	// done with the connection in that goroutine, or nil for a stranger, who is then
	// turned away. The connection has a deadline until then, which Greet leaves alone.
	Greet func(net.Conn) (admitted func())
	// Trouble is told the first error of the listener. It may be nil.
	Trouble func(error)
}

// Serve accepts connections until ln is closed.
func (d *Door) Serve(ln net.Listener) {
	var s strangers
	told := d.Trouble == nil
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !told {
				told = true
				d.Trouble(err)
			}
			s.shrink(0) // the oldest has had time, and gives its descriptor back
			time.Sleep(rest)
			continue
		}
		s.add(conn, d.Time)
		s.shrink(d.Strangers)
		go func() { // until it is turned away, or as long as admitted takes
			admitted := d.Greet(conn)
			s.strike(conn)
			if admitted == nil {
				conn.Close()
				return
			}
			admitted()
		}()
	}
}

// strangers are the connections that have proved nothing yet, the oldest first. One
// is turned away by its deadline, which fails whatever its goroutine waits for: one
// that has proved itself meanwhile keeps the connection.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (s *strangers) add(conn net.Conn, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn.SetDeadline(time.Now().Add(limit))
	s.conns = append(s.conns, conn)
}

// shrink turns the oldest away if there are more than most.
func (s *strangers) shrink(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) > most {
		s.conns[0].SetDeadline(time.Unix(1, 0))
		s.conns = slices.Delete(s.conns, 0, 1)
	}
}

// strike takes conn off the list, and its deadline with it.
func (s *strangers) strike(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(c net.Conn) bool { return c == conn })
	conn.SetDeadline(time.Time{})
}
