// Package rendezvous brings together gompiruns that were started one by one, on
// hosts that do not log in to each other. That of node 0 listens, the others
// connect, and each offers to run an agent.
//
// A process that holds the token belongs to the job. Connections are TLS 1.3, since they carry the
// job's secret, the environment and standard input, with a certificate made for the occasion, which
// proves nothing. Then the two sides prove by package seal that they know a secret: an HMAC, keyed
// with the token, of material exported from this very TLS session. A man in the middle has two
// sessions, and so a proof from one is worth nothing in the other. The token itself is never sent.
// Because a proof can be used to try out tokens, it has to be a long random one.
package rendezvous

import (
	"bytes"
	"fmt"
	"time"
)

const (
	minToken = 16 // bytes

	// handshakeTime bounds how long a connection may take to prove itself.
	handshakeTime = 10 * time.Second
	// silence is how long a peer's host may not answer before it is lost.
	silence = 15 * time.Second
	// missedBeats is how many of node 0's beats may be missing.
	missedBeats = 3
	// obedience is how long a peer may take to end an agent that is to be killed.
	obedience = 3 * time.Second
)

// CheckToken returns a token without the white space around it, if it is long
// enough to be one.
func CheckToken(data []byte) ([]byte, error) {
	token := bytes.TrimSpace(data)
	if len(token) < minToken {
		return nil, fmt.Errorf("a token of %d bytes: want %d random ones or more", len(token), minToken)
	}
	return token, nil
}
