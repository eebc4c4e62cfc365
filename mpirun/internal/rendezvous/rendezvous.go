// Package rendezvous brings together gompiruns that were started one by one, on hosts that do not
// log in to each other. Node 0's listens, the others connect, and each offers to run an agent.
//
// A process that holds the token belongs to the job. Connections are TLS 1.3, because they carry
// the job's secret, the environment and standard input, with an ad-hoc certificate that proves
// nothing. Then the two sides prove by package seal that they know a secret: an HMAC, keyed with
// the token, of material exported from this TLS session. A man in the middle has two sessions,
// and a proof from one is worthless in the other. The token itself is never sent. Because a proof
// allows offline guesses of the token, the token must be long and random.
package rendezvous

import (
	"bytes"
	"fmt"
	"time"
)

const (
	minToken = 16 // bytes

	// handshakeTime bounds the authentication of a connection.
	handshakeTime = 10 * time.Second
	// silence is the time without an answer of a peer's host after which the peer is lost.
	silence = 15 * time.Second
	// missedBeats is the number of missed heartbeats after which node 0 is lost.
	missedBeats = 3
	// obedience bounds the time of a peer to kill an agent.
	obedience = 3 * time.Second
)

// CheckToken returns a token without the white space around it, or an error for a short token.
func CheckToken(data []byte) ([]byte, error) {
	token := bytes.TrimSpace(data)
	if len(token) < minToken {
		return nil, fmt.Errorf("a token of %d bytes: want %d random ones or more", len(token), minToken)
	}
	return token, nil
}
