//go:build !linux

package rendezvous

import (
	"net"
	"time"
)

func limitUnacknowledged(*net.TCPConn, time.Duration) {}
