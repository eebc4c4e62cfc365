package hostinfo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gompi/internal/seal"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/ctl"
)

// Both ends of an exchange prove knowledge of the job's secret before any data.
//
//	caller -> callee  data, end of stream
//	callee -> caller  how many bytes it has received
const (
	greeting        = "gompi doctor 2\n"
	chunk           = 256 << 10
	maxSend         = 2 << 30          // bytes of one exchange
	exchangeTimeout = 10 * time.Second // of the callee, for the whole exchange

	maxPending = 256 // callers in their handshake at once
)

func (h *Check) handshake() seal.Handshake {
	return seal.Handshake{Protocol: greeting, Secret: &h.secret}
}

// send is the caller's side. Its measurements go into r.
func (h *Check) send(conn net.Conn, span time.Duration, r *ctl.Reached) error {
	session, err := h.handshake().Call(conn, nil)
	switch {
	case errors.Is(err, seal.ErrSecret):
		return errors.New("another job answers there")
	case errors.Is(err, seal.ErrSilent):
		return fmt.Errorf("%w: %s", seal.ErrSilent, reason(err))
	case err != nil:
		return errors.New(reason(err))
	}
	r.RoundTrip = session.RoundTrip
	return flood(conn, span, r)
}

// flood sends for a while and waits until the callee has received all data.
func flood(conn net.Conn, span time.Duration, r *ctl.Reached) error {
	data := make([]byte, chunk)
	var sent int64
	start := time.Now()
	for time.Since(start) < span && sent < maxSend {
		n, err := conn.Write(data)
		sent += int64(n)
		if err != nil {
			return fmt.Errorf("after %d bytes: %s", sent, reason(err))
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return errors.New(reason(err))
	}
	var count [8]byte
	if _, err := io.ReadFull(conn, count[:]); err != nil {
		return fmt.Errorf("%d bytes were sent and not received in time: %s", sent, reason(err))
	}
	if got := int64(binary.BigEndian.Uint64(count[:])); got != sent {
		return fmt.Errorf("%d bytes were sent and %d received", sent, got)
	}
	r.Bytes, r.Took = sent, time.Since(start)
	return nil
}

// welcome answers callers until the listener is closed.
func (h *Check) welcome() {
	d := sockets.Acceptor{MaxPending: maxPending, Timeout: exchangeTimeout, Authenticate: func(conn net.Conn) func() {
		if _, err := h.handshake().Answer(conn); err != nil {
			return nil
		}
		return func() { receive(conn) }
	}}
	d.Serve(h.listener)
}

// receive is the callee's side. The caller reports every failure.
func receive(conn net.Conn) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(exchangeTimeout)) != nil {
		return
	}
	var total int64
	data := make([]byte, chunk)
	for total < maxSend+chunk {
		n, err := conn.Read(data)
		total += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return
		}
	}
	conn.Write(binary.BigEndian.AppendUint64(nil, uint64(total))) // the caller notices if it fails
}
