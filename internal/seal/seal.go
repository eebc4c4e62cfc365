// Package seal authenticates the two directions of a connection: each end reads exactly the bytes
// that the other end wrote, in order. The ends first authenticate each other, by a Handshake or a
// protocol of their own. From that exchange and their common secret they derive a key for each
// direction, which no relay between them can know. Their bytes then travel in records:
//
//	length of the payload, 4 bytes, little-endian
//	payload
//	MAC, 16 bytes: HMAC-SHA256 over the record's number and all of the above, cut short
//
// A changed, added, repeated or reflected record, and a record after an omitted one, has a wrong
// MAC, which ends the connection. Records are not encrypted: an eavesdropper can read them. A
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
	// MaxPayload is the largest payload of a record.
	MaxPayload = 64 << 10
	// Overhead is the number of bytes of a record besides its payload.
	Overhead = headSize + tagSize

	headSize = 4
	tagSize  = 16
)

// ErrForged is wrapped by the errors of records that the other end did not write.
var ErrForged = errors.New("the connection carries data that the other end has not sent")

// A Key authenticates one direction of one connection.
type Key [32]byte

// Keys returns the keys of both directions. transcript holds all bytes of the handshake, both
// nonces included; no two connections may have the same.
func Keys(secret, transcript []byte) (caller, callee Key) {
	sum := sha256.Sum256(transcript)
	for side, k := range map[string]*Key{"caller": &caller, "callee": &callee} {
		b, err := hkdf.Key(sha256.New, secret, sum[:], "gompi seal 1 "+side, len(k))
		if err != nil {
			panic(err) // fails only for keys longer than 255 hashes
		}
		copy(k[:], b)
	}
	return caller, callee
}

// A tagger computes the MACs of one direction's records, in order.
type tagger struct {
	mac hash.Hash
	seq uint64
	num [8]byte
	sum [sha256.Size]byte
}

func newTagger(k Key) tagger { return tagger{mac: hmac.New(sha256.New, k[:])} }

// tag returns the MAC of the next record, given without MAC, valid until the next call.
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

// NewWriter returns a Writer whose records are authenticated with k.
func NewWriter(k Key) *Writer { return &Writer{newTagger(k)} }

// Open begins a record at the end of b. The caller appends a payload of at most MaxPayload bytes to
// the result, and then calls Close with that and with the length that b had.
func (w *Writer) Open(b []byte) []byte { return append(b, make([]byte, headSize)...) }

// Close ends the record that begins at start of b.
func (w *Writer) Close(b []byte, start int) []byte {
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-headSize))
	return append(b, w.tag(b[start:])...)
}

// A Reader verifies and unpacks the records of one direction. Read from the connection into
// ReadBuffer, report the number of bytes to Filled, then call Next until ok is false.
type Reader struct {
	tagger
	buf        []byte
	start, end int // of the unread bytes in buf
}

// NewReader returns a Reader of records that k authenticates.
func NewReader(k Key) *Reader {
	return &Reader{tagger: newTagger(k), buf: make([]byte, MaxPayload+Overhead)}
}

// ReadBuffer returns the free part of the buffer, for bytes of the connection. After a Next with ok
// false it is not empty.
func (r *Reader) ReadBuffer() []byte {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	return r.buf[r.end:]
}

// Filled reports that n bytes have been read into ReadBuffer.
func (r *Reader) Filled(n int) { r.end += n }

// Next returns the next payload, valid until ReadBuffer is called. ok is false if the record is
// incomplete. After an error the connection is unusable.
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
