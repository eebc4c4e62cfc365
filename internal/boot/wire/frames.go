package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrFrame is wrapped by the errors of Frames: the stream cannot be read on.
var ErrFrame = errors.New("control channel: malformed frame")

const (
	headSize  = 5
	firstRoom = 512
	// pieceRoom bounds the memory allocated before the bytes of a long frame arrive.
	pieceRoom = 256 << 10
)

// Frames splits a stream into frames. Read into ReadBuffer, report the bytes to Filled, then call
// Next until it returns none.
type Frames struct {
	// Limit bounds the body of a frame in bytes.
	Limit int

	buf        []byte
	start, end int // range of unread bytes
}

// ReadBuffer returns the buffer for the next read. It is never empty. If exact is true, it ends
// with the current frame's header or body, so that later frames stay in the stream.
func (f *Frames) ReadBuffer(exact bool) []byte {
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

// missing returns the number of bytes that the current frame lacks. It is at least 1, because Next
// has returned none.
func (f *Frames) missing() int {
	n := f.end - f.start
	if n < headSize {
		return headSize - n
	}
	return max(1, 4+int(binary.LittleEndian.Uint32(f.buf[f.start:]))-n)
}

// Filled reports that n bytes have been read into ReadBuffer.
func (f *Frames) Filled(n int) { f.end += n }

// Keep leaves the bodies that Next has returned to the caller, forever: later frames are read into
// other memory.
func (f *Frames) Keep() {
	f.buf = append([]byte(nil), f.buf[f.start:f.end]...)
	f.start, f.end = 0, len(f.buf)
}

// Partial reports whether a frame has begun that Next has not returned.
func (f *Frames) Partial() bool { return f.end > f.start }

// Next returns the next whole frame. ok is false if the frame is incomplete. body is valid until
// ReadBuffer is called.
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
