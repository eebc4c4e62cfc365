package rendezvous

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged ends t when sent data is not acknowledged within limit.
func limitUnacknowledged(t *net.TCPConn, limit time.Duration) {
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
	})
}
