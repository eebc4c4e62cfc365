package boot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// How a rank and rank 0 make sure of each other, before anything else is said:
//
//	rank -> rank 0  greeting, the rank, a nonce
//	rank 0 -> rank  a nonce
//	rank -> rank 0  MAC over all of that
//	rank 0 -> rank  MAC over the same, with another label
//
// The rank goes first, so that a stranger learns nothing from rank 0.
const (
	hubGreeting = "gompihub"
	nonceSize   = 16
	helloSize   = len(hubGreeting) + 4 + nonceSize
)

var errProof = errors.New("it is of another job: its secret differs")

// proof returns the MAC of one side over the greeting and both nonces.
func proof(secret *[32]byte, label string, hello, nonce []byte) []byte {
	h := hmac.New(sha256.New, secret[:])
	h.Write([]byte(label))
	h.Write(hello)
	h.Write(nonce)
	return h.Sum(nil)
}

// prove makes rank 0 at the other end believe that this is rank, and makes sure
// that it is rank 0.
func prove(conn net.Conn, secret *[32]byte, rank int) error {
	hello := binary.LittleEndian.AppendUint32([]byte(hubGreeting), uint32(rank))
	hello = append(hello, make([]byte, nonceSize)...)
	rand.Read(hello[helloSize-nonceSize:])
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	reply := make([]byte, nonceSize+sha256.Size)
	if _, err := io.ReadFull(conn, reply[:nonceSize]); err != nil {
		return err
	}
	if _, err := conn.Write(proof(secret, "rank", hello, reply[:nonceSize])); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, reply[nonceSize:]); err != nil {
		return errProof // that is how it refuses ours
	}
	if !hmac.Equal(reply[nonceSize:], proof(secret, "hub", hello, reply[:nonceSize])) {
		return errProof
	}
	return nil
}

// check finds out which rank is at the other end, if it knows the secret.
func check(conn net.Conn, secret *[32]byte) (rank int, err error) {
	hello := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, hello); err != nil {
		return 0, err
	}
	if string(hello[:len(hubGreeting)]) != hubGreeting {
		return 0, fmt.Errorf("greeting %q: want %q", hello[:len(hubGreeting)], hubGreeting)
	}
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	if _, err := conn.Write(nonce); err != nil {
		return 0, err
	}
	theirs := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return 0, err
	}
	if !hmac.Equal(theirs, proof(secret, "rank", hello, nonce)) {
		return 0, errProof
	}
	_, err = conn.Write(proof(secret, "hub", hello, nonce))
	return int(binary.LittleEndian.Uint32(hello[len(hubGreeting):])), err
}
