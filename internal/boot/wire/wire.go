// Package wire is the binary form of the messages between a rank and its agent, and the codec and
// frames of other control channels.
//
// A frame is the length of the rest (4 bytes, little-endian), a kind (1 byte) and a body. Whole
// numbers in a body are varints; strings and lists start with their length. Decoding takes memory
// only for bytes that have arrived.
package wire

import (
	"encoding"
	"encoding/binary"
	"errors"
	"slices"
	"unicode/utf8"
)

var (
	errShort    = errors.New("message ends too early")
	errNumber   = errors.New("message holds a number out of range")
	errTrailing = errors.New("message continues after its end")
)

// A Codec codes the fields of a message in order: it either appends them to a body or sets them
// from one. So one function states a message's layout for both. Decoded []byte fields alias the
// body. When a body is invalid, the remaining fields are not set.
type Codec struct {
	b       []byte // appended bytes, or the bytes left to read
	reading bool
	err     error
}

func (c *Codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

// Uint codes an unsigned number of at most limit.
func Uint[T ~uint8 | ~uint64](c *Codec, v *T, limit uint64) {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.b)
	switch {
	case size <= 0:
		c.fail(errShort)
	case n > limit:
		c.fail(errNumber)
	default:
		*v, c.b = T(n), c.b[size:]
	}
}

// Int codes a signed number from lo to hi.
func Int[T ~int | ~int32 | ~int64](c *Codec, v *T, lo, hi int64) {
	if !c.reading {
		c.b = binary.AppendVarint(c.b, int64(*v))
		return
	}
	n, size := binary.Varint(c.b)
	switch {
	case size <= 0:
		c.fail(errShort)
	case n < lo || n > hi:
		c.fail(errNumber)
	default:
		*v, c.b = T(n), c.b[size:]
	}
}

// Rank codes a rank, or a number of ranks.
func (c *Codec) Rank(v *int) { Int(c, v, 0, MaxRanks) }

// Bools codes truth values.
func (c *Codec) Bools(vs ...*bool) {
	for _, v := range vs {
		var bit uint8
		if *v {
			bit = 1
		}
		if Uint(c, &bit, 1); c.reading {
			*v = bit == 1
		}
	}
}

// Bytes codes a byte string of at most limit bytes.
func (c *Codec) Bytes(v *[]byte, limit int) { text(c, v, limit) }

// String codes a string of at most limit bytes.
func (c *Codec) String(v *string, limit int) { text(c, v, limit) }

// cutMark ends a text that was too long.
const cutMark = " [...]"

// Prose codes a text for people. A text longer than limit bytes is cut when appended: no peer could
// read a message that is too long, and all of the message would be lost.
func (c *Codec) Prose(v *string, limit int) {
	if c.reading || len(*v) <= limit {
		c.String(v, limit)
		return
	}
	end := limit - len(cutMark)
	for end > 0 && !utf8.RuneStart((*v)[end]) {
		end--
	}
	short := (*v)[:end] + cutMark
	c.String(&short, limit)
}

func text[T string | []byte](c *Codec, v *T, limit int) {
	n := uint64(len(*v))
	Uint(c, &n, uint64(limit))
	switch {
	case !c.reading:
		c.b = append(c.b, *v...)
	case n > uint64(len(c.b)):
		c.fail(errShort)
	default:
		*v, c.b = T(c.b[:n:n]), c.b[n:]
	}
}

// Text codes a value by its text, of at most limit bytes.
func (c *Codec) Text(v interface {
	encoding.TextMarshaler
	encoding.TextUnmarshaler
}, limit int) {
	b, err := v.MarshalText()
	if c.Bytes(&b, limit); c.reading && c.err == nil {
		err = v.UnmarshalText(b)
	}
	if err != nil {
		c.fail(err)
	}
}

// Fixed codes len(v) bytes.
func (c *Codec) Fixed(v []byte) {
	switch {
	case !c.reading:
		c.b = append(c.b, v...)
	case len(c.b) < len(v):
		c.fail(errShort)
	default:
		c.b = c.b[copy(v, c.b):]
	}
}

// List codes a list of at most limit elements. An empty list is read as nil.
func List[T any](c *Codec, v *[]T, limit int, element func(*T)) {
	n := len(*v)
	Int(c, &n, 0, int64(limit))
	if !c.reading {
		for i := range *v {
			element(&(*v)[i])
		}
		return
	}
	*v = slices.Grow(*v, min(n, len(c.b)))
	for ; n > 0 && c.err == nil; n-- {
		*v = append(*v, *new(T))
		element(&(*v)[len(*v)-1])
	}
}

// Strings codes a list of at most count strings of at most limit bytes.
func (c *Codec) Strings(v *[]string, count, limit int) {
	List(c, v, count, func(s *string) { c.String(s, limit) })
}
