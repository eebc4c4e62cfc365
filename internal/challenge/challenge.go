// Package challenge lets the two ends of a connection make sure that both know
// one secret, before anything else is said and without saying it:
//
//	caller -> callee  greeting, what the caller says of itself, a nonce
//	callee -> caller  a nonce
//	caller -> callee  MAC over all of that
//	callee -> caller  MAC over the same, with another label
//
// The caller proves itself first, so that a stranger learns nothing. Somebody between
// the two may hand on all of this; what they say afterwards is safe from him if they
// seal it with the keys that both have then. Deadlines are the connection's: its owner
// sets them.
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

// NonceSize is the size of what each side makes up.
const NonceSize = 32

var (
	// ErrSecret tells that the other end does not know the secret.
	ErrSecret = errors.New("it is of another job: its secret differs")
	// ErrSilent tells that the other end said nothing.
	ErrSilent = errors.New("it took the connection and did not answer")
)

// A Door is what both ends know beforehand.
type Door struct {
	Greeting string    // what speaks here, and in which version
	Secret   *[32]byte // of the job
	Says     int       // how many bytes the caller says of itself
}

// A Session is what the two ends have when they are sure of each other.
type Session struct {
	Says          []byte        // what the caller says of itself
	RoundTrip     time.Duration // how long the callee took to answer the proof; the caller's alone
	Send, Receive seal.Key      // for what this end says, and for what it hears
}

// Call is the caller's side.
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
		return nil, fmt.Errorf("%w: %w", ErrSecret, err) // that is how it refuses ours
	}
	if !hmac.Equal(proof, d.mac("callee", hello, theirs)) {
		return nil, ErrSecret
	}
	session := &Session{Says: says, RoundTrip: time.Since(start)}
	session.Send, session.Receive = d.keys(hello, theirs)
	return session, nil
}

// Answer is the callee's side.
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

// keys returns what seals what the two sides say from now on.
func (d Door) keys(hello, nonce []byte) (caller, callee seal.Key) {
	return seal.Keys(d.Secret[:], slices.Concat(hello, nonce))
}

// mac is the proof of one side. The sides' labels differ, so that no proof can
// be sent back as one's own.
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
