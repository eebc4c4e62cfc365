// Package challenge is a handshake in which the two ends of a connection prove to each other
// that both know one secret, without sending it. Nothing else is sent before:
//
//	caller -> callee  greeting, the caller's description of itself, a nonce
//	callee -> caller  a nonce
//	caller -> callee  MAC over all of that
//	callee -> caller  MAC over the same, with another label
//
// The caller proves itself first, so that a caller without the secret learns nothing. A man in
// the middle can relay the handshake; he cannot change what follows if both ends authenticate
// it with the keys of their Session (package seal). The owner of the connection sets its
// deadlines.
package challenge

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gompi/internal/seal"
)

// NonceSize is the size of a nonce in bytes.
const NonceSize = 32

var (
	// ErrSecret tells that the other end does not know the secret.
	ErrSecret = errors.New("it is of another job: its secret differs")
	// ErrSilent tells that the other end said nothing.
	ErrSilent = errors.New("it took the connection and did not answer")
)

// A Door holds what both ends know before the handshake.
type Door struct {
	Greeting string    // names the protocol and its version
	Secret   *[32]byte // of the job
	Says     int       // length of the caller's description of itself, in bytes
}

// A Session is the result of a handshake in which both ends have proved themselves.
type Session struct {
	Says          []byte        // the caller's description of itself
	RoundTrip     time.Duration // from the caller's proof to the callee's; only Call sets it
	Send, Receive seal.Key      // of the bytes that this end sends, and of those that it receives
}

// Call runs the caller's side of the handshake.
func (d Door) Call(conn io.ReadWriter, says []byte) (*Session, error) {
	if len(says) != d.Says {
		return nil, fmt.Errorf("%d bytes to say: want %d", len(says), d.Says)
	}
	hello := append([]byte(d.Greeting), says...)
	hello = append(hello, nonce()...)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	theirs := make([]byte, NonceSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	start := time.Now()
	if _, err := conn.Write(d.mac("caller", hello, theirs)); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSecret, err) // a callee that refuses our proof closes the connection
	}
	if !hmac.Equal(proof, d.mac("callee", hello, theirs)) {
		return nil, ErrSecret
	}
	session := &Session{Says: says, RoundTrip: time.Since(start)}
	session.Send, session.Receive = d.keys(hello, theirs)
	return session, nil
}

// Answer runs the callee's side of the handshake.
func (d Door) Answer(conn io.ReadWriter) (*Session, error) {
	n := len(d.Greeting)
	hello := make([]byte, n+d.Says+NonceSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return nil, err
	}
	if string(hello[:n]) != d.Greeting {
		return nil, fmt.Errorf("greeting %q: want %q", hello[:n], d.Greeting)
	}
	mine := nonce()
	if _, err := conn.Write(mine); err != nil {
		return nil, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return nil, err
	}
	if !hmac.Equal(proof, d.mac("caller", hello, mine)) {
		return nil, ErrSecret
	}
	if _, err := conn.Write(d.mac("callee", hello, mine)); err != nil {
		return nil, err
	}
	session := &Session{Says: hello[n : n+d.Says]}
	session.Receive, session.Send = d.keys(hello, mine)
	return session, nil
}

// keys returns the keys that authenticate what the two sides send after the handshake.
func (d Door) keys(hello, nonce []byte) (caller, callee seal.Key) {
	return seal.Keys(d.Secret[:], slices.Concat(hello, nonce))
}

// mac is the proof of one side. The labels of the sides differ, so that neither proof can be
// reflected as the other.
func (d Door) mac(side string, hello, nonce []byte) []byte {
	h := hmac.New(sha256.New, d.Secret[:])
	h.Write([]byte(side))
	h.Write(hello)
	h.Write(nonce)
	return h.Sum(nil)
}

func nonce() []byte {
	b := make([]byte, NonceSize)
	rand.Read(b) // never fails
	return b
}
