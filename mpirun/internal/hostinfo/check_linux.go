package hostinfo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"gompi/internal/seal"
	"gompi/internal/sockets"
	"gompi/mpirun/internal/ctl"
)

// A Check is this host's part of gompirun doctor. A Check examines the host and connects to other
// hosts as ranks would: addresses in the same order, ports of the same range.
type Check struct {
	secret   [32]byte
	listener net.Listener
	own      []netip.Prefix
	trouble  []string
}

// BeginCheck starts to listen where ranks would. Errors become Trouble of the Findings.
func BeginCheck(m *ctl.Examine) *Check {
	h := &Check{secret: m.Secret}
	filter, err := sockets.ParseFilter(m.Interfaces)
	if err == nil {
		h.own, err = sockets.LocalAddresses(filter)
	}
	if err != nil {
		h.trouble = append(h.trouble, err.Error())
	}
	if h.listener, err = listen(m.PortLow, m.PortHigh); err != nil {
		h.trouble = append(h.trouble, err.Error())
		return h
	}
	go h.welcome() // until Close
	return h
}

// listen listens on the first free port of the range.
func listen(low, high int) (net.Listener, error) {
	for port := low; ; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		if port >= high {
			return nil, fmt.Errorf("no free port to listen on in %d-%d", low, high)
		}
	}
}

// Close ends the checkup.
func (h *Check) Close() {
	if h.listener != nil {
		h.listener.Close()
	}
}

// Findings examines the host.
func (h *Check) Findings() *ctl.Findings {
	f := &ctl.Findings{Trouble: strings.Join(h.trouble, "; ")}
	if h.listener != nil {
		f.Port = h.listener.Addr().(*net.TCPAddr).Port
	}
	f.Addresses, f.Interfaces = h.own, interfaces()
	examine(f)
	return f
}

// Reach connects to another host and sends it data.
func (h *Check) Reach(m *ctl.Reach) *ctl.Reached {
	r := &ctl.Reached{Peer: m.Peer}
	conn, err := dial(sockets.Endpoints(m.Addresses, h.own, uint16(m.Port)), m.Limit)
	if err != nil {
		r.Trouble = err.Error()
		return r
	}
	defer conn.Close()
	own, _ := netip.ParseAddrPort(conn.LocalAddr().String())
	r.Address, r.Interface = conn.RemoteAddr().String(), sockets.InterfaceOf(own.Addr())
	if err := conn.SetDeadline(time.Now().Add(m.Limit + m.Send)); err != nil {
		r.Trouble = err.Error()
		return r
	}
	if err := h.send(conn, m.Send, r); err != nil {
		r.Trouble = fmt.Sprintf("%s: %v", r.Address, err)
	}
	return r
}

// dial tries addresses in turn, within limit for all of them together. The error names each.
func dial(addrs []netip.AddrPort, limit time.Duration) (net.Conn, error) {
	if len(addrs) == 0 {
		return nil, errors.New("it has no address that other hosts could reach")
	}
	end := time.Now().Add(limit)
	var failed []string
	for i, a := range addrs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Until(end)/time.Duration(len(addrs)-i))
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.String())
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = append(failed, fmt.Sprintf("%v: %s", a, reason(err)))
	}
	return nil, errors.New(strings.Join(failed, "; "))
}

// reason returns the text of the innermost error of err.
func reason(err error) string {
	var number syscall.Errno
	var timeout net.Error
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	return err.Error()
}

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
