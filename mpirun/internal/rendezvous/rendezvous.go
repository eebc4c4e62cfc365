// Package rendezvous brings together gompiruns that were started one by one, on
// hosts that do not log in to each other. That of node 0 listens, the others
// connect, and each offers to run an agent.
//
// Whoever holds the token belongs to the job. Connections are TLS 1.3 with a
// certificate made for the occasion, which proves nothing; then each side proves
// the token by an HMAC, keyed with it, of material exported from this very TLS
// session. Somebody in the middle has two sessions, and so a proof from one is
// worth nothing in the other. The token itself is never sent. Because a proof can
// be used to try out tokens, it has to be a long random one.
package rendezvous

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
)

const (
	minToken  = 16 // bytes
	maxString = 2 << 20
	maxList   = 1 << 20
	maxNodes  = 1 << 20
	maxFrame  = 64 << 20
	chunk     = 32 << 10

	// handshakeTime bounds how long a connection may take to prove itself.
	handshakeTime = 10 * time.Second
	// silence is how long a peer's host may not answer before it is lost.
	silence = 15 * time.Second
	// patience is how many of node 0's beats may be missing.
	patience = 3
	// obedience is how long a peer may take to end an agent that is to be killed.
	obedience = 3 * time.Second
)

// ReadToken returns the token in a file, without the white space around it, and
// whether others than the file's owner may read it.
func ReadToken(file string) (token []byte, exposed bool, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, false, err
	}
	if token, err = CheckToken(data); err != nil {
		return nil, false, fmt.Errorf("%s: %w", file, err)
	}
	st, err := os.Stat(file)
	return token, err == nil && st.Mode().Perm()&0o077 != 0, err
}

// CheckToken returns a token without the white space around it, if it is long
// enough to be one.
func CheckToken(data []byte) ([]byte, error) {
	token := bytes.TrimSpace(data)
	if len(token) < minToken {
		return nil, fmt.Errorf("a token of %d bytes: want %d random ones or more", len(token), minToken)
	}
	return token, nil
}

// An Offer is what a node says of itself, and what it was asked to run.
type Offer struct {
	Version string
	JobName string      // all nodes of a job have the same, as -rdzv-id says; "" for any
	Least   int         // nodes that the job needs
	Most    int         // nodes that it may have
	Node    int         // which this one is, -1 if node 0 may choose
	Host    string      // its own name
	Ranks   string      // -nproc-per-node
	Program ctl.Program // what it is to run, but for its sum and size
	Environ []string    // of gompirun there
}

func (o *Offer) append(b []byte) []byte {
	b = wire.AppendBytes(wire.AppendBytes(b, o.Version), o.JobName)
	b = wire.AppendInt(wire.AppendInt(wire.AppendInt(b, o.Least), o.Most), o.Node)
	b = wire.AppendBytes(wire.AppendBytes(b, o.Host), o.Ranks)
	return wire.AppendStrings(o.Program.Append(b), o.Environ)
}

func parseOffer(body []byte) (*Offer, error) {
	d := wire.NewDecoder(body)
	o := &Offer{Version: d.String(maxString), JobName: d.String(maxString)}
	o.Least, o.Most, o.Node = int(d.Int(1, maxNodes)), int(d.Int(1, maxNodes)), int(d.Int(-1, maxNodes))
	o.Host, o.Ranks = d.String(maxString), d.String(maxString)
	o.Program, o.Environ = ctl.ParseProgram(d), d.Strings(maxList, maxString)
	return o, d.Err()
}

// refusal says why node 0, which has own, does not take a node with offer; ""
// if it does.
func refusal(own, offer *Offer) string {
	switch {
	case offer.Version != own.Version:
		return fmt.Sprintf("this gompirun is version %s, and that of node 0 %s", offer.Version, own.Version)
	case offer.JobName != own.JobName:
		return fmt.Sprintf("-rdzv-id is %q here and %q at node 0", offer.JobName, own.JobName)
	case offer.Least != own.Least || offer.Most != own.Most:
		return fmt.Sprintf("-nnodes is %d:%d here and %d:%d at node 0", offer.Least, offer.Most, own.Least, own.Most)
	case offer.Node == 0 || offer.Node >= own.Most:
		return fmt.Sprintf("-node-rank %d: want one from 1 to %d, or none", offer.Node, own.Most-1)
	}
	return ""
}

// End is how a job ended, as all its nodes say.
type End struct {
	Status int
	Text   string
}

func (e *End) append(b []byte) []byte {
	return wire.AppendBytes(wire.AppendInt(b, e.Status), e.Text)
}

func parseEnd(body []byte) (*End, error) {
	d := wire.NewDecoder(body)
	e := &End{Status: int(d.Int(0, 255)), Text: d.String(maxString)}
	return e, d.Err()
}

func appendNumber(n int) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendInt(b, n) }
}

func parseNumber(body []byte) (int, error) {
	d := wire.NewDecoder(body)
	n := int(d.Int(math.MinInt32, math.MaxInt32))
	return n, d.Err()
}

func appendWelcome(node int, beat time.Duration) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendInt(wire.AppendInt(b, node), int(beat)) }
}

func parseWelcome(body []byte) (node int, beat time.Duration, err error) {
	d := wire.NewDecoder(body)
	node, beat = int(d.Int(1, maxNodes)), time.Duration(d.Int(0, math.MaxInt64/patience))
	return node, beat, d.Err()
}

func appendBytes[T ~string | ~[]byte](v T) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, v...) }
}

// Kinds of frames. The order is part of the language.
const (
	kindOffer   = iota + 1 // from a node: Offer
	kindWelcome            // to a node: which it is, and how often it will hear from node 0
	kindRefuse             // to a node: why it is none
	kindStart              // to a node: start an agent
	kindData               // both ways: what goes into the agent and comes out of it
	kindClose              // to a node: close the agent's input, which ends it
	kindKill               // to a node: kill the agent
	kindEnded              // from a node: how its agent has ended
	kindSignal             // from a node: a signal that has come there
	kindEnd                // to a node: End
	kindBeat               // to a node: node 0 lives
	kindPause              // to a node: node 0 is stopped, and will be silent
)

var errClosed = errors.New("the connection was closed")
