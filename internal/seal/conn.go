package seal

import (
	"errors"
	"net"
)

// A Conn is a connection whose ends exchange authenticated records. One goroutine may read while
// another writes.
type Conn struct {
	net.Conn
	in   *Reader
	left []byte // verified payload that Read has yet to return
	out  *Writer
	buf  []byte
}

// NewConn returns conn with its bytes in records: key send authenticates written records, key
// receive the records that are read.
func NewConn(conn net.Conn, send, receive Key) *Conn {
	return &Conn{Conn: conn, in: NewReader(receive), out: NewWriter(send)}
}

// Read implements net.Conn. It returns only verified bytes.
func (c *Conn) Read(b []byte) (int, error) {
	for len(c.left) == 0 {
		payload, ok, err := c.in.Next()
		if err != nil {
			return 0, err
		}
		if ok {
			c.left = payload
			continue
		}
		n, err := c.Conn.Read(c.in.ReadBuffer())
		c.in.Filled(n)
		if n == 0 && err != nil {
			return 0, err
		}
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}

// Write implements net.Conn. After an error the other end cannot parse further records.
func (c *Conn) Write(b []byte) (int, error) {
	for done := 0; ; {
		n := min(len(b)-done, MaxPayload)
		c.buf = c.out.Close(append(c.out.Open(c.buf[:0]), b[done:done+n]...), 0)
		if _, err := c.Conn.Write(c.buf); err != nil {
			return done, err
		}
		if done += n; done == len(b) {
			return done, nil
		}
	}
}

// CloseWrite ends the written direction, if the connection can end one direction alone.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
