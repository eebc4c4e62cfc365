package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// NonceSize is the size of a nonce in bytes.
const NonceSize = 32

var (
	// ErrSecret means that the other end does not know the secret.
	ErrSecret = errors.New("it is of another job: its secret differs")
	// ErrSilent means that the other end sent nothing.
	ErrSilent = errors.New("it took the connection and did not answer")
)

// A Handshake holds the common knowledge of both ends. In the handshake the two ends of a
// connection prove to each other that both know one secret, without sending it. The first messages
// are:
//
//	caller -> callee  protocol, the caller's id, a nonce
//	callee -> caller  a nonce
//	caller -> callee  MAC over all of that
//	callee -> caller  MAC over the same, with another label
//
// The caller proves itself first, so that a caller without the secret learns nothing. A man in the
// middle can relay the handshake. He cannot change later bytes if both ends authenticate them with
// the keys of their Session. The owner of the connection sets its deadlines.
type Handshake struct {
	Protocol string    // names the protocol and its version
	Secret   *[32]byte // of the job
	IDSize   int       // length of the caller's id, in bytes
}

// A Session is the result of a handshake in which both ends have proved themselves.
type Session struct {
	CallerID      []byte        // the caller's id
	RoundTrip     time.Duration // from the caller's proof to the callee's; only Call sets it
	Send, Receive Key           // of this end's bytes, and of the other end's
}

// Call runs the caller's side of the handshake.
func (h Handshake) Call(conn io.ReadWriter, id []byte) (*Session, error) {
	if len(id) != h.IDSize {
		return nil, fmt.Errorf("an id of %d bytes: want %d", len(id), h.IDSize)
	}
	hello := append([]byte(h.Protocol), id...)
	hello = append(hello, nonce()...)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	theirs := make([]byte, NonceSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	start := time.Now()
	if _, err := conn.Write(h.mac("caller", hello, theirs)); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSecret, err) // a callee that refuses the proof closes the connection
	}
	if !hmac.Equal(proof, h.mac("callee", hello, theirs)) {
		return nil, ErrSecret
	}
	session := &Session{CallerID: id, RoundTrip: time.Since(start)}
	session.Send, session.Receive = h.keys(hello, theirs)
	return session, nil
}

// Answer runs the callee's side of the handshake.
func (h Handshake) Answer(conn io.ReadWriter) (*Session, error) {
	n := len(h.Protocol)
	hello := make([]byte, n+h.IDSize+NonceSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return nil, err
	}
	if string(hello[:n]) != h.Protocol {
		return nil, fmt.Errorf("protocol %q: want %q", hello[:n], h.Protocol)
	}
	mine := nonce()
	if _, err := conn.Write(mine); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, h.mac("caller", hello, mine)) {
		return nil, ErrSecret
	}
	if _, err := conn.Write(h.mac("callee", hello, mine)); err != nil {
		return nil, err
	}
	session := &Session{CallerID: hello[n : n+h.IDSize]}
	session.Receive, session.Send = h.keys(hello, mine)
	return session, nil
}

// keys returns the keys for the two sides' bytes after the handshake.
func (h Handshake) keys(hello, nonce []byte) (caller, callee Key) {
	return Keys(h.Secret[:], slices.Concat(hello, nonce))
}

// mac is the proof of one side. The labels of the sides differ, so that neither proof can be
// reflected as the other.
func (h Handshake) mac(side string, hello, nonce []byte) []byte {
	mac := hmac.New(sha256.New, h.Secret[:])
	mac.Write([]byte(side))
	mac.Write(hello)
	mac.Write(nonce)
	return mac.Sum(nil)
}

func nonce() []byte {
	b := make([]byte, NonceSize)
	rand.Read(b) // never fails
	return b
}
