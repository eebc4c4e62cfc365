package checkup

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gompi/mpirun/internal/ctl"
)

// The exchange. The caller proves itself first, so that a stranger learns
// nothing, and nobody's data is taken before that:
//
//	caller -> callee  greeting, nonce
//	callee -> caller  nonce
//	caller -> callee  MAC of both nonces
//	callee -> caller  MAC of the same, with another label
//	caller -> callee  data, end of stream
//	callee -> caller  how many bytes it has received
const (
	greeting  = "gompi doctor 1\n"
	nonceSize = 32
	chunk     = 256 << 10
	maxSend   = 2 << 30          // bytes of one exchange
	patience  = 10 * time.Second // of the callee, for all of it
)

// mac is the proof of one side.
func (h *Host) mac(who string, nonces []byte) []byte {
	m := hmac.New(sha256.New, h.secret[:])
	m.Write([]byte(greeting + who))
	m.Write(nonces)
	return m.Sum(nil)
}

// send is the caller's side. It fills in what it has measured.
func (h *Host) send(conn net.Conn, span time.Duration, r *ctl.Reached) error {
	nonces := make([]byte, 2*nonceSize)
	rand.Read(nonces[:nonceSize]) // never fails
	if _, err := conn.Write(append([]byte(greeting), nonces[:nonceSize]...)); err != nil {
		return errors.New(reason(err))
	}
	if _, err := io.ReadFull(conn, nonces[nonceSize:]); err != nil {
		return fmt.Errorf("it took the connection and did not answer: %s", reason(err))
	}
	start := time.Now()
	if _, err := conn.Write(h.mac("caller", nonces)); err != nil {
		return errors.New(reason(err))
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return fmt.Errorf("another job answers there: %s", reason(err))
	}
	if !hmac.Equal(proof, h.mac("callee", nonces)) {
		return errors.New("another job answers there")
	}
	r.RoundTrip = time.Since(start)
	return flood(conn, span, r)
}

// flood sends for a while and waits until all has arrived.
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
func (h *Host) welcome() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		go h.receive(conn) // for as long as its patience lasts
	}
}

// receive is the callee's side. Whatever goes wrong, the caller says it.
func (h *Host) receive(conn net.Conn) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	head := make([]byte, len(greeting)+nonceSize)
	if _, err := io.ReadFull(conn, head); err != nil || string(head[:len(greeting)]) != greeting {
		return
	}
	nonces := append(head[len(greeting):], make([]byte, nonceSize)...)
	rand.Read(nonces[nonceSize:])
	if _, err := conn.Write(nonces[nonceSize:]); err != nil {
		return
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil || !hmac.Equal(proof, h.mac("caller", nonces)) {
		return
	}
	if _, err := conn.Write(h.mac("callee", nonces)); err != nil {
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
