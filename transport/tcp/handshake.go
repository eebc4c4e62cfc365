package tcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"

	"gompi/internal/env"
)

// The handshake. The side that connects is the caller, the other one the callee.
//
//	caller -> callee  hello      caller, callee, callee's card, a nonce, addresses, network
//	callee -> caller  challenge  a nonce
//	caller -> callee  proof      MAC over all of that
//	callee -> caller  welcome    MAC over the same, with another label; or refusal
//	caller -> callee  go
//
// The addresses are the two ends of the connection, as the caller sees them. The callee refuses a
// connection with other addresses, so a man in the middle must be able to send from the one address
// and to receive at the other. A loopback address counts together with its network namespace. If
// all frames have MACs, addresses do not matter. A refusal has a MAC if the caller has
// authenticated. A refusal without a MAC may come from any process: the caller reports it as
// unproven and continues as after a lost connection.
//
// The caller proves itself first, so that other processes learn nothing. The caller may send frames
// after the welcome, the callee after the go. Until the go, either may drop the connection without
// harm, which keeps simultaneous calls simple; see peer.go.
const (
	greeting = "gompi"

	handshakeVersion = 3

	helloSize = 120
	replySize = 40 // challenge, proof, welcome and refusal
	goSize    = 8

	challengeSize = 32
	networkSize   = 16
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

// A reason is a callee's reason to refuse a connection.
type reason uint8

const (
	wrongListener    reason = iota + 1 // the hello is for another rank or another job
	badProof                           // the MAC is wrong
	leaving                            // this rank is closing
	alreadyConnected                   // this rank has a connection with the caller already
	translated                         // the callee sees other addresses than the caller
	macDiffers                         // only one of the two has FrameMAC set
	otherNetwork                       // a loopback address, in another network than the caller's
	numReasons
)

var reasonTexts = [numReasons]string{
	wrongListener:    "another rank or another job answers there",
	badProof:         "the proof is wrong: the secrets differ",
	leaving:          "it is leaving",
	alreadyConnected: "it has been connected to us before",
	translated: "it sees other addresses of this connection than we do: they are translated on the way (NAT), or relayed; " +
		env.FrameMAC + "=1 on all ranks lets translated connections in",
	macDiffers: env.FrameMAC + " is set on one of the two ranks only",
	otherNetwork: "a loopback address led to another network, by its boot id and network namespace: the connection is relayed, or one of the two ranks " +
		"cannot read them in /proc; " + env.FrameMAC + "=1 on all ranks lets such connections in",
}

func (r reason) String() string {
	if r >= numReasons || reasonTexts[r] == "" {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return reasonTexts[r]
}

// open writes the start of a message into b, which has the length of the message.
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

// A transcript is the messages of both sides of a handshake. The proofs cover the transcript and
// the job's id.
type transcript struct {
	caller, callee uint32
	listenerNonce  [nonceSize]byte // the callee's card
	fromCaller     [challengeSize]byte
	fromCallee     [challengeSize]byte
	from, to       netip.AddrPort    // the ends of the connection: the caller's, the callee's
	network        [networkSize]byte // of to, for a loopback address
	sealed         bool              // frames have MACs
}

func (tr *transcript) hello() []byte {
	b := make([]byte, helloSize)
	stepHello.open(b, 0)
	binary.BigEndian.PutUint32(b[8:], tr.caller)
	binary.BigEndian.PutUint32(b[12:], tr.callee)
	copy(b[16:], tr.listenerNonce[:])
	copy(b[32:], tr.fromCaller[:])
	putAddr(b[64:], tr.from)
	putAddr(b[82:], tr.to)
	if tr.sealed {
		b[100] = 1
	}
	copy(b[104:], tr.network[:])
	return b
}

// putAddr stores a in 18 bytes.
func putAddr(b []byte, a netip.AddrPort) {
	if a.IsValid() {
		addr := a.Addr().As16()
		copy(b, addr[:])
	}
	binary.BigEndian.PutUint16(b[16:], a.Port())
}

func getAddr(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:]))
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
	copy(tr.listenerNonce[:], b[16:])
	copy(tr.fromCaller[:], b[32:])
	tr.from, tr.to = getAddr(b[64:]), getAddr(b[82:])
	tr.sealed = b[100] == 1
	if binary.BigEndian.Uint32(b[100:])&^(1<<24) != 0 {
		return fmt.Errorf("hello with flags % x", b[100:104])
	}
	copy(tr.network[:], b[104:])
	return nil
}

// reply returns a message of replySize with body after its start.
func (s step) reply(why reason, body []byte) []byte {
	b := make([]byte, replySize)
	s.open(b, why)
	copy(b[8:], body)
	return b
}

// mac returns the proof of a step. Its computation needs the secret and both nonces. The proof
// covers the step and the reason, so that no proof can be reflected or used for another step.
func (tr *transcript) mac(secret *[32]byte, job string, s step, why reason) []byte {
	m := hmac.New(sha256.New, secret[:])
	var head [8]byte
	s.open(head[:], why)
	m.Write(head[:])
	m.Write(tr.all(job))
	return m.Sum(nil)
}

// all returns the bytes on which the two sides must agree.
func (tr *transcript) all(job string) []byte {
	return append(append(tr.hello(), tr.fromCallee[:]...), job...)
}

// proves reports whether body, the end of a message, holds the proof.
func (tr *transcript) proves(body []byte, secret *[32]byte, job string, s step, why reason) bool {
	return hmac.Equal(body, tr.mac(secret, job, s, why))
}
