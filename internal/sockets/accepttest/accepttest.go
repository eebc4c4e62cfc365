// Package accepttest has a listener for tests of servers.
package accepttest

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// A Tired listener fails Left times, as when descriptors are exhausted, before it accepts again.
type Tired struct {
	net.Listener
	Left atomic.Int32
}

// Accept implements net.Listener.
func (l *Tired) Accept() (net.Conn, error) {
	if l.Left.Add(-1) >= 0 {
		return nil, os.NewSyscallError("accept4", syscall.EMFILE)
	}
	return l.Listener.Accept()
}
