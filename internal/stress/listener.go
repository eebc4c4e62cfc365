package stress

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// An Exhausted listener fails Left times, as if the process had no descriptor left. Then it accepts
// again.
type Exhausted struct {
	net.Listener
	Left atomic.Int32
}

// Accept implements net.Listener.
func (l *Exhausted) Accept() (net.Conn, error) {
	if l.Left.Add(-1) >= 0 {
		return nil, os.NewSyscallError("accept4", syscall.EMFILE)
	}
	return l.Listener.Accept()
}
