package liveness

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"

	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// The reasons an operation fails, for errors.Is. Faces export them.
var (
	// ErrMismatch: ranks called different collectives, or the same collective with different
	// types, operators, roots or counts.
	ErrMismatch = errors.New("ranks called different collectives")
	// ErrRevoked: the communicator is broken. A rank died, a connection was cut, or an operation
	// was cancelled after its beginning.
	ErrRevoked = errors.New("communicator revoked")
	// ErrLeft: the peer has closed the communicator, or has left the job.
	ErrLeft = errors.New("peer has left")
)

// ErrClosed: the communicator was closed here. ErrClosed unwraps to net.ErrClosed.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string { return "communicator closed" }
func (closedError) Unwrap() error { return net.ErrClosed }

// A MismatchError names two calls that should have been equal: Rank made Call, Peer made PeerCall,
// both as their Seq-th collective on the communicator, whose ranks these are.
//
// If the calls are equal, a block differs: in its length, given by counts as of an alltoallv, or in
// its type. Rank expected Block where Peer sent PeerBlock. If the blocks are equal, too, the two
// ranks called different collectives before the Seq-th, which are not remembered.
type MismatchError struct {
	Seq              uint64
	Rank, Peer       int
	Call, PeerCall   call.Fingerprint
	Block, PeerBlock call.Block
}

func (e *MismatchError) Error() string {
	switch {
	case e.Call == e.PeerCall && e.Block == e.PeerBlock:
		return fmt.Sprintf("before collective %d, %v, ranks %d and %d called different collectives, too long ago to say which", e.Seq, e.Call, e.Rank, e.Peer)
	case e.Call == e.PeerCall:
		return fmt.Sprintf("collective %d, %v: rank %d expected %v from rank %d, which sends %v", e.Seq, e.Call, e.Rank,
			e.Block, e.Peer, e.PeerBlock)
	}
	return fmt.Sprintf("collective %d: rank %d called %v, but rank %d called %v", e.Seq, e.Rank, e.Call,
		e.Peer, e.PeerCall)
}

// Is makes errors.Is(err, ErrMismatch) true.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// A RevokedError states why a communicator is broken. Rank is the rank, in the communicator, that
// died or gave up, -1 if none can be named. Died reports that Rank died, or was cut off.
type RevokedError struct {
	Rank  int
	Host  string
	Cause string
	Died  bool
}

func (e *RevokedError) Error() string {
	if e.Rank < 0 {
		return "communicator revoked: " + e.Cause
	}
	return fmt.Sprintf("communicator revoked: rank %d (host %s) %s", e.Rank, e.Host, e.Cause)
}

// Is makes errors.Is(err, ErrRevoked) true.
func (e *RevokedError) Is(target error) bool { return target == ErrRevoked }

// A Reason is why a communicator broke, in the form that travels to its other members: a
// mismatch, if Mismatch is not nil, or else a cause.
type Reason struct {
	Rank     world.Rank // the rank that broke the communicator
	Mismatch *MismatchError
	Cause    string
	Died     bool // Rank is lost
}

// MaxReason bounds an encoded Reason.
const MaxReason = 4096

// The kind of an encoded Reason, after its rank.
const (
	ofCause = iota
	ofMismatch
	ofDeath
)

// mismatchSize is the bytes of an encoded mismatch.
const mismatchSize = 8 + 1 + 8 + 4 + 4 + 6*8 + 2

// Encode encodes v. Long causes are cut.
func (v Reason) Encode() []byte {
	b := make([]byte, 0, mismatchSize+len(v.Cause))
	b = binary.LittleEndian.AppendUint64(b, uint64(v.Rank))
	m := v.Mismatch
	if m == nil {
		kind := byte(ofCause)
		if v.Died {
			kind = ofDeath
		}
		return append(append(b, kind), v.Cause[:min(len(v.Cause), MaxReason-len(b)-1)]...)
	}
	b = append(b, ofMismatch)
	b = binary.LittleEndian.AppendUint64(b, m.Seq)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Peer))
	for _, c := range []call.Fingerprint{m.Call, m.PeerCall} {
		w0, w1 := c.Words()
		b = binary.LittleEndian.AppendUint64(b, w0)
		b = binary.LittleEndian.AppendUint64(b, w1)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Block.Bytes))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.PeerBlock.Bytes))
	return append(b, byte(m.Block.Type), byte(m.PeerBlock.Type))
}

// DecodeReason decodes the result of Encode.
func DecodeReason(b []byte) (Reason, error) {
	if len(b) < 9 {
		return Reason{}, fmt.Errorf("revocation of %d bytes: want at least 9", len(b))
	}
	rank := binary.LittleEndian.Uint64(b)
	if rank > math.MaxInt32 {
		return Reason{}, fmt.Errorf("revocation by rank %d", rank)
	}
	v := Reason{Rank: world.Rank(rank)}
	kind, b := b[8], b[9:]
	if kind != ofMismatch {
		v.Cause, v.Died = string(b), kind == ofDeath
		return v, nil
	}
	if len(b) != mismatchSize-9 {
		return Reason{}, fmt.Errorf("mismatch notice of %d bytes: want %d", len(b), mismatchSize-9)
	}
	u64 := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	v.Mismatch = &MismatchError{
		Seq:       u64(0),
		Rank:      int(int32(binary.LittleEndian.Uint32(b[8:]))),
		Peer:      int(int32(binary.LittleEndian.Uint32(b[12:]))),
		Call:      call.OfWords(u64(16), u64(24)),
		PeerCall:  call.OfWords(u64(32), u64(40)),
		Block:     call.Block{Bytes: int64(u64(48)), Type: mem.Type(b[64])},
		PeerBlock: call.Block{Bytes: int64(u64(56)), Type: mem.Type(b[65])},
	}
	return v, nil
}
