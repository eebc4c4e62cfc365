package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
)

// A Protocol is the messages of one channel. M is their interface; they are pointers to structs.
// Any number of goroutines may use a Protocol at once.
type Protocol[M any] struct {
	fields func(M, *Codec)
	types  []reflect.Type // by kind, from 1
	kinds  map[reflect.Type]byte
}

// NewProtocol returns the protocol of the types of messages. Their order matters: the kind of a
// frame is the position of its message, from 1. fields codes a message's fields.
func NewProtocol[M any](fields func(M, *Codec), messages ...M) *Protocol[M] {
	p := &Protocol[M]{fields: fields, types: make([]reflect.Type, 1), kinds: map[reflect.Type]byte{}}
	for _, m := range messages {
		t := reflect.TypeOf(m).Elem()
		p.kinds[t] = byte(len(p.types))
		p.types = append(p.types, t)
	}
	return p
}

// Append appends m's frame.
func (p *Protocol[M]) Append(b []byte, m M) []byte {
	start := len(b)
	c := Codec{b: append(b, 0, 0, 0, 0, p.kinds[reflect.TypeOf(m).Elem()])}
	p.fields(m, &c)
	binary.LittleEndian.PutUint32(c.b[start:], uint32(len(c.b)-start-4))
	return c.b
}

// Parse returns the message of a frame. Byte slices in it alias body.
func (p *Protocol[M]) Parse(kind byte, body []byte) (m M, err error) {
	if kind == 0 || int(kind) >= len(p.types) {
		return m, fmt.Errorf("%w: unknown kind %d", ErrFrame, kind)
	}
	read := reflect.New(p.types[kind]).Interface().(M)
	c := Codec{b: body, reading: true}
	if p.fields(read, &c); len(c.b) > 0 {
		c.fail(errTrailing)
	}
	if c.err != nil {
		return m, fmt.Errorf("%w: %T: %w", ErrFrame, read, c.err)
	}
	return read, nil
}

// Next takes the next message from f. ok is false if the message is incomplete. Its byte slices are
// valid until f.ReadBuffer is called.
func (p *Protocol[M]) Next(f *Frames) (m M, ok bool, err error) {
	kind, body, ok, err := f.Next()
	if ok {
		m, err = p.Parse(kind, body)
	}
	return m, ok, err
}

// Receive returns the next message of f. It reads missing bytes from r and blocks until the message
// is whole. Its byte slices are valid until the next call.
func (p *Protocol[M]) Receive(r io.Reader, f *Frames) (m M, err error) {
	for {
		if m, ok, err := p.Next(f); ok || err != nil {
			return m, err
		}
		n, err := r.Read(f.ReadBuffer(false))
		f.Filled(n)
		if n == 0 && err != nil {
			return m, err
		}
	}
}
