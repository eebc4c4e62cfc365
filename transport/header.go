package transport

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// HeaderSize is the encoded size of a Header in bytes.
//
//c:const GOMPI_FRAME_
const HeaderSize = 48

// Version is the version of the frame format. Ranks of different versions refuse each other.
//
//c:const GOMPI_FRAME_
const Version = 9

//c:const GOMPI_FRAME_
const magic = 0x6d // 'm'

// MaxPayload bounds Header.Len. A larger length on the wire is an error, detected before memory is
// allocated for the payload.
const MaxPayload = 1 << 48

// A Kind is the purpose of a frame. Transports carry all kinds alike, except Goodbye, which is
// their own.
type Kind uint8

// The frame kinds. "A" and "B" are the two words of the Header.
//
//c:const GOMPI_FRAME_
const (
	NoKind Kind = iota
	Eager       // point-to-point message with its payload
	// request to send: envelope of a point-to-point message by rendezvous; A: bytes, B: sender's
	// token, Seq: place of the payload or 0, Flags: Short too
	RTS
	// clear to send: answer to RTS or Offer; A: sender's token, B: receiver's token, Seq: place to
	// store it or 0, Tag: chunks to send now, 0 for all
	CTS
	Data // payload requested by a CTS, or a part of it; A: receiver's token
	Done // the payload has been copied from or to the place that was sent; A: token of the rank that sent it
	// returned credit; A: for point-to-point messages, B: for messages of collectives on Comm, Tag:
	// how many messages the sender of the frame holds if it takes no more unexpected ones, else 0
	Credit
	// one message of a collective; Seq: its number, A and B: the call, Tag: digest of all calls so
	// far, Flags: type of its elements
	Coll
	Ready // the receiver of a large Coll message is ready; Seq, A and B as Coll, Flags: 1 to get an Offer first
	// answer to Ready instead of Coll, as an RTS: the payload waits at the sender; Seq, Tag and
	// Flags as Coll, A: bytes, B: sender's token
	Offer
	Call      // the sender waits for the receiver in this collective; Seq, A and B as Coll
	Revoke    // Comm is broken; the payload says why
	Await     // the sender waits for the receiver on Comm; Left answers once Comm is closed there
	Left      // the sender has closed Comm, and neither sends nor receives there any more
	Withdraw  // takes an RTS back; A: sender's token
	Withdrawn // answer to Withdraw, if no receive has matched the RTS; A: sender's token
	Flush     // asks whether the receiver still writes to places it was given; A: a number
	Flushed   // answer to Flush: it no longer writes; A: the number
	Goodbye   // the sender leaves in good order; nothing follows
	numKinds
)

// Short, in the Flags of an RTS frame, means that the message is short and announced only for lack
// of credit: its receiver may fetch the payload before a receive matches.
const Short = 1 << 7

var kindNames = [numKinds]string{"none", "eager", "rts", "cts", "data", "done", "credit", "coll", "ready", "offer",
	"call", "revoke", "await", "left", "withdraw", "withdrawn", "flush", "flushed", "goodbye"}

func (k Kind) String() string {
	if k >= numKinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// A Header opens every frame. The Kind determines the meaning of the fields.
type Header struct {
	Kind  Kind
	Flags uint8
	Tag   int32
	Comm  uint64 // context id of the communicator
	Seq   uint64 // number of the collective on that communicator
	Len   int64  // bytes of payload that follow
	A, B  uint64
}

// An encoded is the layout of an encoded Header. Its integers are little-endian.
//
//c:struct gompi_header
type encoded struct {
	magic, version, kind, flags uint8

	tag            int32
	comm, seq, len uint64
	a, b           uint64
}

// The offsets of the fields.
const (
	magicAt   = unsafe.Offsetof(encoded{}.magic)
	versionAt = unsafe.Offsetof(encoded{}.version)
	kindAt    = unsafe.Offsetof(encoded{}.kind)
	flagsAt   = unsafe.Offsetof(encoded{}.flags)
	tagAt     = unsafe.Offsetof(encoded{}.tag)
	commAt    = unsafe.Offsetof(encoded{}.comm)
	seqAt     = unsafe.Offsetof(encoded{}.seq)
	lenAt     = unsafe.Offsetof(encoded{}.len)
	aAt       = unsafe.Offsetof(encoded{}.a)
	bAt       = unsafe.Offsetof(encoded{}.b)
)

var _ [HeaderSize]byte = [unsafe.Sizeof(encoded{})]byte{}

// Encode stores h in the first HeaderSize bytes of dst.
func (h *Header) Encode(dst []byte) {
	_ = dst[HeaderSize-1]
	dst[magicAt], dst[versionAt], dst[kindAt], dst[flagsAt] = magic, Version, byte(h.Kind), h.Flags
	binary.LittleEndian.PutUint32(dst[tagAt:], uint32(h.Tag))
	binary.LittleEndian.PutUint64(dst[commAt:], h.Comm)
	binary.LittleEndian.PutUint64(dst[seqAt:], h.Seq)
	binary.LittleEndian.PutUint64(dst[lenAt:], uint64(h.Len))
	binary.LittleEndian.PutUint64(dst[aAt:], h.A)
	binary.LittleEndian.PutUint64(dst[bAt:], h.B)
}

// Decode sets h from the first HeaderSize bytes of src. Decode refuses headers that no rank of this
// version sends.
func (h *Header) Decode(src []byte) error {
	_ = src[HeaderSize-1]
	if src[magicAt] != magic || src[versionAt] != Version {
		return fmt.Errorf("%w: frame starts with %#x version %d, want %#x version %d", ErrProtocol, src[magicAt],
			src[versionAt], magic, Version)
	}
	h.Kind, h.Flags = Kind(src[kindAt]), src[flagsAt]
	h.Tag = int32(binary.LittleEndian.Uint32(src[tagAt:]))
	h.Comm = binary.LittleEndian.Uint64(src[commAt:])
	h.Seq = binary.LittleEndian.Uint64(src[seqAt:])
	n := binary.LittleEndian.Uint64(src[lenAt:])
	h.A = binary.LittleEndian.Uint64(src[aAt:])
	h.B = binary.LittleEndian.Uint64(src[bAt:])
	if h.Kind == NoKind || h.Kind >= numKinds {
		return fmt.Errorf("%w: frame of unknown %v", ErrProtocol, h.Kind)
	}
	if n > MaxPayload {
		return fmt.Errorf("%w: frame announces %d bytes, at most %d are allowed", ErrProtocol, n, int64(MaxPayload))
	}
	h.Len = int64(n)
	return nil
}
