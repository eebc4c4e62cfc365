package rendezvous

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"gompi/internal/boot/wire"
	"gompi/internal/seal"
)

// errToken is the error of a refused connection.
var errToken = errors.New("has another token")

var errClosed = errors.New("the connection was closed")

// A conn is a connection on which both sides have proved that they know the token. Several
// goroutines may send frames; one receives.
type conn struct {
	tls    *tls.Conn
	frames wire.Frames

	mu  sync.Mutex // for sending
	buf []byte
}

// secure makes a conn of c, whose deadlines are the caller's. On failure c is closed.
func secure(c net.Conn, token []byte, server bool) (*conn, error) {
	keepAlive(c)
	t, err := handshake(c, server)
	if err == nil {
		err = prove(t, token, server)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &conn{tls: t, frames: wire.Frames{Limit: maxFrame}}, nil
}

// keepAlive makes the kernel notice the end of the other host.
func keepAlive(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 3, Interval: silence / 3, Count: 2})
		limitUnacknowledged(t, silence)
	}
}

func handshake(c net.Conn, server bool) (*tls.Conn, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} // prove replaces certificates
	if !server {
		t := tls.Client(c, config)
		return t, t.Handshake()
	}
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{cert}
	config.SessionTicketsDisabled = true
	t := tls.Server(c, config)
	return t, t.Handshake()
}

// certificate makes a certificate that proves nothing.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// prove runs the handshake of package seal, with a secret derived from the token and this TLS
// session.
func prove(t *tls.Conn, token []byte, server bool) error {
	state := t.ConnectionState()
	session, err := state.ExportKeyingMaterial("EXPORTER-gompi-rendezvous", nil, sha256.Size)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, token)
	mac.Write(session)
	h := seal.Handshake{Protocol: "gompi rendezvous 2", Secret: (*[sha256.Size]byte)(mac.Sum(nil))}
	if server {
		_, err = h.Answer(t)
	} else {
		_, err = h.Call(t, nil)
	}
	if err == seal.ErrSecret || errors.Is(err, seal.ErrSecret) && errors.Is(err, io.EOF) {
		return errToken // a refused node finds the connection closed
	}
	return err
}

// send sends m, within limit; 0 is no limit.
func (c *conn) send(m message, limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = protocol.Append(c.buf[:0], m)
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	c.tls.SetWriteDeadline(deadline)
	_, err := c.tls.Write(c.buf)
	return err
}

// receive returns the next message, which is valid until the next call.
func (c *conn) receive() (message, error) {
	m, err := protocol.Receive(c.tls, &c.frames)
	if errors.Is(err, io.EOF) {
		err = errClosed
	}
	return m, err
}

// unexpected is the error of a message out of turn.
func unexpected(m message) error { return fmt.Errorf("%w: unexpected %T", wire.ErrFrame, m) }

// close closes the connection at once, even during a send.
func (c *conn) close() { c.tls.NetConn().Close() }
