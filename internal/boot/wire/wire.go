// Package wire is the binary form of the messages between a rank and its agent,
// and the primitives and frames that other control channels are made of too.
//
// A frame is the length of the rest (4 bytes, little-endian), a kind (1 byte)
// and a body. Whole numbers in a body are varints; strings and lists start with
// their length. Decoding takes memory only for bytes that have arrived.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// AppendUint appends v.
func AppendUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](b []byte, v T) []byte {
	return binary.AppendUvarint(b, uint64(v))
}

// AppendInt appends v.
func AppendInt[T ~int | ~int32 | ~int64](b []byte, v T) []byte {
	return binary.AppendVarint(b, int64(v))
}

// AppendBool appends v.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBytes appends the length of v and v.
func AppendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// AppendStrings appends the number of vs and each of them.
func AppendStrings(b []byte, vs []string) []byte {
	b = AppendInt(b, len(vs))
	for _, v := range vs {
		b = AppendBytes(b, v)
	}
	return b
}

var (
	errShort    = errors.New("message ends too early")
	errNumber   = errors.New("message holds a number out of range")
	errTrailing = errors.New("message goes on after its end")
)

// A Decoder takes a body apart. After the first error every method returns
// zero; Err tells. Its zero value has no body and fails.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder returns a Decoder of body, which it does not copy.
func NewDecoder(body []byte) *Decoder { return &Decoder{b: body} }

// Err returns the first error, or that bytes are left over.
func (d *Decoder) Err() error {
	if d.err == nil && len(d.b) > 0 {
		return errTrailing
	}
	return d.err
}

func (d *Decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

// Uint returns the next unsigned number, at most limit.
func (d *Decoder) Uint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	if v > limit {
		d.fail(errNumber)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Int returns the next signed number, between lo and hi.
func (d *Decoder) Int(lo, hi int64) int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail(errShort)
		return 0
	}
	if v < lo || v > hi {
		d.fail(errNumber)
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Bool returns the next truth value.
func (d *Decoder) Bool() bool { return d.Uint(1) == 1 }

// Bytes returns the next byte string, at most limit bytes long. It aliases the body.
func (d *Decoder) Bytes(limit int) []byte {
	n := d.Uint(uint64(limit))
	if n > uint64(len(d.b)) {
		d.fail(errShort)
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// String returns the next string, at most limit bytes long.
func (d *Decoder) String(limit int) string { return string(d.Bytes(limit)) }

// List returns the length of a list, at most limit. Its elements take at least
// one byte each, so it is bounded by what has arrived too.
func (d *Decoder) List(limit int) int {
	n := d.Int(0, int64(limit))
	if n > int64(len(d.b)) {
		d.fail(errShort)
		return 0
	}
	return int(n)
}

// Strings returns the next list of strings.
func (d *Decoder) Strings(count, limit int) []string {
	n := d.List(count)
	if n == 0 {
		return nil
	}
	vs := make([]string, n)
	for i := range vs {
		vs[i] = d.String(limit)
	}
	return vs
}

// AppendFrame appends a frame of the given kind whose body is what body appends.
func AppendFrame(b []byte, kind byte, body func([]byte) []byte) []byte {
	start := len(b)
	b = body(append(b, 0, 0, 0, 0, kind))
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// ErrFrame is wrapped by the errors of Frames: the stream cannot be read on.
var ErrFrame = errors.New("control channel: malformed frame")

const (
	headSize  = 5
	firstRoom = 512
	// pieceRoom bounds the memory taken ahead of a long frame's bytes.
	pieceRoom = 256 << 10
)

// Frames splits a stream into frames. Use: read into Room, say so with Filled,
// then take frames with Next until there is none.
type Frames struct {
	// Limit bounds the body of a frame in bytes.
	Limit int

	buf        []byte
	start, end int // what is unread
}

// Room returns where to read to. It is never empty. If exact is true it ends
// with the current frame's header or body, so that what comes after the frame
// stays in the stream.
func (f *Frames) Room(exact bool) []byte {
	want, n := f.missing(), f.end-f.start
	if f.start > 0 && (n == 0 || len(f.buf)-f.end < min(want, pieceRoom)) {
		copy(f.buf, f.buf[f.start:f.end])
		f.start, f.end = 0, n
	}
	if len(f.buf)-f.end < min(want, pieceRoom) {
		size := max(2*len(f.buf), f.end+min(want, pieceRoom), firstRoom)
		f.buf = append(make([]byte, 0, size), f.buf[:f.end]...)[:size]
	}
	if exact {
		return f.buf[f.end:min(len(f.buf), f.end+want)]
	}
	return f.buf[f.end:]
}

// missing returns how many bytes the current frame lacks; at least 1, because
// Next has been called until it returned none.
func (f *Frames) missing() int {
	n := f.end - f.start
	if n < headSize {
		return headSize - n
	}
	return max(1, 4+int(binary.LittleEndian.Uint32(f.buf[f.start:]))-n)
}

// Filled says that n bytes have been read into Room.
func (f *Frames) Filled(n int) { f.end += n }

// Partial reports whether a frame has begun that Next has not returned.
func (f *Frames) Partial() bool { return f.end > f.start }

// Next returns the next whole frame; ok is false when more must be read first.
// body is valid until Room is called.
func (f *Frames) Next() (kind byte, body []byte, ok bool, err error) {
	have := f.buf[f.start:f.end]
	if len(have) < headSize {
		return 0, nil, false, nil
	}
	n := int64(binary.LittleEndian.Uint32(have))
	if n < 1 || n-1 > int64(f.Limit) {
		return 0, nil, false, fmt.Errorf("%w: length %d, want 1 to %d", ErrFrame, n, f.Limit+1)
	}
	if int64(len(have)) < 4+n {
		return 0, nil, false, nil
	}
	f.start += 4 + int(n)
	return have[4], have[headSize : 4+n], true, nil
}
