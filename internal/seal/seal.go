// Package seal makes sure that what one end of a connection reads is what the other
// end wrote, all of it and in order. Two ends that have made sure of each other agree
// on keys, one for each direction, that nobody between them can know. What they say
// travels in records:
//
//	length of the payload, 4 bytes, little-endian
//	payload
//	MAC, 16 bytes: HMAC-SHA256 over the record's number and all of the above, cut short
//
// A record that is changed, added, repeated, sent back or follows one that was left out
// has a wrong MAC, which ends the connection. Nothing is hidden from who listens, and a
// connection may be cut at any place.
package seal

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

const (
	// MaxPayload is the most that one record carries.
	MaxPayload = 64 << 10
	// Overhead is what a record has besides its payload.
	Overhead = headSize + tagSize

	headSize = 4
	tagSize  = 16
)

// ErrForged is wrapped by the errors of records that the other end has not made.
var ErrForged = errors.New("the connection carries what the other end has not sent")

// A Key is that of one direction of one connection.
type Key [32]byte

// Keys returns the keys of both directions. transcript is all that has been said until
// the ends were sure of each other, with what either made up; no two connections may
// have the same.
func Keys(secret, transcript []byte) (caller, callee Key) {
	sum := sha256.Sum256(transcript)
	for side, k := range map[string]*Key{"caller": &caller, "callee": &callee} {
		b, err := hkdf.Key(sha256.New, secret, sum[:], "gompi seal 1 "+side, len(k))
		if err != nil {
			panic(err) // it fails for keys longer than 255 hashes
		}
		copy(k[:], b)
	}
	return caller, callee
}

// A tagger makes the MACs of one direction, one record after the other.
type tagger struct {
	mac hash.Hash
	seq uint64
	num [8]byte
	sum [sha256.Size]byte
}

func newTagger(k Key) tagger { return tagger{mac: hmac.New(sha256.New, k[:])} }

// tag returns the MAC of the next record, given without it. It is valid until the next.
func (t *tagger) tag(record []byte) []byte {
	binary.LittleEndian.PutUint64(t.num[:], t.seq)
	t.seq++
	t.mac.Reset()
	t.mac.Write(t.num[:])
	t.mac.Write(record)
	return t.mac.Sum(t.sum[:0])[:tagSize]
}

// A Writer makes the records of one direction.
type Writer struct{ tagger }

// NewWriter returns one for what is said with k.
func NewWriter(k Key) *Writer { return &Writer{newTagger(k)} }

// Open begins a record at the end of b: its payload is to be appended, at most
// MaxPayload, and Close called with what that gives and with len(b).
func (w *Writer) Open(b []byte) []byte { return append(b, make([]byte, headSize)...) }

// Close ends the record that begins at start of b.
func (w *Writer) Close(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-headSize))
	return append(b, w.tag(b[start:])...)
}

// A Reader takes the records of one direction apart. Use: read into Room, say so with
// Filled, then take payloads with Next until there is none.
type Reader struct {
	tagger
	buf        []byte
	start, end int // what is unread
}

// NewReader returns one for what is said with k.
func NewReader(k Key) *Reader {
	return &Reader{tagger: newTagger(k), buf: make([]byte, MaxPayload+Overhead)}
}

// Room returns where to read to. It is not empty once Next has returned none.
func (r *Reader) Room() []byte {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	return r.buf[r.end:]
}

// Filled says that n bytes have been read into Room.
func (r *Reader) Filled(n int) { r.end += n }

// Next returns the next payload, which is valid until Room is called; ok is false when
// more must be read first. After an error the connection is of no use.
func (r *Reader) Next() (payload []byte, ok bool, err error) {
	have := r.buf[r.start:r.end]
	if len(have) < headSize {
		return nil, false, nil
	}
	n := int64(binary.LittleEndian.Uint32(have))
	if n > MaxPayload {
		return nil, false, fmt.Errorf("%w: a record of %d bytes, at most %d are allowed", ErrForged, n, MaxPayload)
	}
	if int64(len(have)) < n+Overhead {
		return nil, false, nil
	}
	record, rest := have[:headSize+n], have[headSize+n:]
	number := r.seq
	if !hmac.Equal(rest[:tagSize], r.tag(record)) {
		return nil, false, fmt.Errorf("%w: record %d has a wrong MAC", ErrForged, number)
	}
	r.start += len(record) + tagSize
	return record[headSize:], true, nil
}
