// Package challenge lets the two ends of a connection make sure that both know
// one secret, before anything else is said and without saying it:
//
//	caller -> callee  greeting, what the caller says of itself, a nonce
//	callee -> caller  a nonce
//	caller -> callee  MAC over all of that
//	callee -> caller  MAC over the same, with another label
//
// The caller proves itself first, so that a stranger learns nothing. Deadlines
// are the connection's: its owner sets them.
package challenge

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"
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

// Call is the caller's side. It returns how long the callee took to answer the
// proof, a round trip.
func (d Door) Call(conn io.ReadWriter, says []byte) (time.Duration, error) {
	if len(says) != d.Says {
		return 0, fmt.Errorf("%d bytes to say: want %d", len(says), d.Says)
	}
	hello := append([]byte(d.Greeting), says...)
	hello = append(hello, nonce()...)
	if _, err := conn.Write(hello); err != nil {
		return 0, err
	}
	theirs := make([]byte, NonceSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	start := time.Now()
	if _, err := conn.Write(d.mac("caller", hello, theirs)); err != nil {
		return 0, err
	}
	proof := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, proof); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrSecret, err) // that is how it refuses ours
	}
	if !hmac.Equal(proof, d.mac("callee", hello, theirs)) {
		return 0, ErrSecret
	}
	return time.Since(start), nil
}

// Answer is the callee's side. It returns what the caller says of itself, once
// that is proved.
func (d Door) Answer(conn io.ReadWriter) (says []byte, err error) {
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
	_, err = conn.Write(d.mac("callee", hello, mine))
	return hello[n : n+d.Says], err
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
