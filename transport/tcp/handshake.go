package tcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// The handshake. Whoever connects is the caller, the other is the callee.
//
//	caller -> callee  hello      who calls whom, which card it read, a nonce
//	callee -> caller  challenge  a nonce
//	caller -> callee  proof      MAC over all of that
//	callee -> caller  welcome    MAC over the same, with another label; or refusal
//	caller -> callee  go
//
// The caller proves itself first, so that a stranger learns nothing. The
// connection is made when the caller has the welcome, for the caller, and when
// the callee has the go, for the callee; frames flow only then. Until go, either
// may drop the connection without harm, which is what makes simultaneous calls
// simple; see peer.go.
const (
	greeting = "gompi"

	handshakeVersion = 1

	helloSize = 64
	replySize = 40 // challenge, proof, welcome and refusal
	goSize    = 8

	challengeSize = 32
	macSize       = sha256.Size
)

// A step is one message of the handshake.
type step uint8

const (
	stepHello step = iota + 1
	stepChallenge
	stepProof
	stepWelcome
	stepRefusal
	stepGo
)

// A reason says why a callee refuses.
type reason uint8

const (
	wrongDoor reason = iota + 1 // the hello is for another rank or another job
	badProof                    // the MAC is not ours
	leaving                     // this rank is closing
	notAgain                    // it has been connected to the caller already
	numReasons
)

var reasonTexts = [numReasons]string{
	wrongDoor: "another rank or another job answers there",
	badProof:  "it does not accept our proof: its secret differs",
	leaving:   "it is leaving",
	notAgain:  "it has been connected to us before",
}

func (r reason) String() string {
	if r >= numReasons || reasonTexts[r] == "" {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return reasonTexts[r]
}

// open starts a message in b, whose length is the message's.
func (s step) open(b []byte, why reason) {
	n := copy(b, greeting)
	b[n], b[n+1], b[n+2] = handshakeVersion, byte(s), byte(why)
}

// parseStep checks the start of a message.
func parseStep(b []byte) (step, reason, error) {
	n := len(greeting)
	if string(b[:n]) != greeting {
		return 0, 0, fmt.Errorf("%q is no gompi handshake", b[:n])
	}
	if b[n] != handshakeVersion {
		return 0, 0, fmt.Errorf("handshake of version %d, want %d", b[n], handshakeVersion)
	}
	return step(b[n+1]), reason(b[n+2]), nil
}

// A transcript is what both sides of a handshake have said, and what proofs
// cover together with the job's id.
type transcript struct {
	caller, callee uint32
	door           [nonceSize]byte // the callee's card
	fromCaller     [challengeSize]byte
	fromCallee     [challengeSize]byte
}

func (tr *transcript) hello() []byte {
	b := make([]byte, helloSize)
	stepHello.open(b, 0)
	binary.BigEndian.PutUint32(b[8:], tr.caller)
	binary.BigEndian.PutUint32(b[12:], tr.callee)
	copy(b[16:], tr.door[:])
	copy(b[32:], tr.fromCaller[:])
	return b
}

func (tr *transcript) readHello(b []byte) error {
	switch s, _, err := parseStep(b); {
	case err != nil:
		return err
	case s != stepHello:
		return fmt.Errorf("handshake starts with step %d", s)
	}
	tr.caller = binary.BigEndian.Uint32(b[8:])
	tr.callee = binary.BigEndian.Uint32(b[12:])
	copy(tr.door[:], b[16:])
	copy(tr.fromCaller[:], b[32:])
	return nil
}

// reply returns a message of replySize with body after its start.
func (s step) reply(why reason, body []byte) []byte {
	b := make([]byte, replySize)
	s.open(b, why)
	copy(b[8:], body)
	return b
}

// mac returns the proof that belongs to a step: who knows the secret, and has
// seen both nonces, can make it. The step and the reason are covered, so that
// no proof can be sent back or turned into another.
func (tr *transcript) mac(secret *[32]byte, job string, s step, why reason) []byte {
	m := hmac.New(sha256.New, secret[:])
	var head [8]byte
	s.open(head[:], why)
	m.Write(head[:])
	var n [8]byte
	binary.BigEndian.PutUint32(n[:], tr.caller)
	binary.BigEndian.PutUint32(n[4:], tr.callee)
	m.Write(n[:])
	m.Write(tr.door[:])
	m.Write(tr.fromCaller[:])
	m.Write(tr.fromCallee[:])
	m.Write([]byte(job))
	return m.Sum(nil)
}

// proves reports whether body, the end of a message, holds the proof.
func (tr *transcript) proves(body []byte, secret *[32]byte, job string, s step, why reason) bool {
	return hmac.Equal(body, tr.mac(secret, job, s, why))
}
