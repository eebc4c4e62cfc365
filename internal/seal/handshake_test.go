package seal

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// handshake runs both sides of a handshake on one connection.
func handshake(caller, callee Handshake, sends string) (id string, called, answered error) {
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		_, err := caller.Call(a, []byte(sends))
		a.Close()
		done <- err
	}()
	session, answered := callee.Answer(b)
	b.Close()
	if answered == nil {
		id = string(session.CallerID)
	}
	return id, <-done, answered
}

func known(protocol string, secret byte) Handshake {
	return Handshake{Protocol: protocol, Secret: &[32]byte{secret}, IDSize: 4}
}

func TestBothKnowTheSecret(t *testing.T) {
	id, called, answered := handshake(known("test 1", 7), known("test 1", 7), "rank")
	if id != "rank" || called != nil || answered != nil {
		t.Errorf("id %q; caller: %v; callee: %v; want %q and no errors", id, called, answered, "rank")
	}
}

func TestAnotherSecretIsRefusedByBoth(t *testing.T) {
	id, called, answered := handshake(known("test 1", 7), known("test 1", 8), "rank")
	if id != "" || !errors.Is(called, ErrSecret) || !errors.Is(answered, ErrSecret) {
		t.Errorf("id %q; caller: %v; callee: %v; want nothing and %v twice", id, called, answered, ErrSecret)
	}
}

func TestAnotherGreetingIsQuoted(t *testing.T) {
	_, called, answered := handshake(known("GET /x", 7), known("test 1", 7), "rank")
	if called == nil || answered == nil || !strings.Contains(answered.Error(), `"GET /x": want "test 1"`) {
		t.Errorf("caller: %v; callee: %v; want both protocols quoted", called, answered)
	}
}

func TestACallerSendsWhatTheCalleeExpects(t *testing.T) {
	var sent bytes.Buffer
	if _, err := known("test 1", 7).Call(&sent, []byte("too long")); err == nil || sent.Len() > 0 {
		t.Errorf("error %v after %d bytes: want one before anything is sent", err, sent.Len())
	}
}

// Both ends have the same keys for the later records, and no other connection has them.
func TestEachConnectionHasKeysOfItsOwn(t *testing.T) {
	seen := map[Key]bool{}
	for range 3 {
		a, b := net.Pipe()
		d := known("test 1", 7)
		answered := make(chan *Session)
		go func() {
			s, _ := d.Answer(b)
			answered <- s
		}()
		called, err := d.Call(a, []byte("rank"))
		s := <-answered
		if err != nil || s == nil || called.Send != s.Receive || called.Receive != s.Send {
			t.Fatalf("caller %+v, %v; callee %+v: want the same keys, the other way round", called, err, s)
		}
		seen[s.Send], seen[s.Receive] = true, true
	}
	if len(seen) != 6 {
		t.Errorf("%d keys for 3 connections, want 6", len(seen))
	}
}

// A callee that does not know the secret cannot send the caller's own proof back.
func TestAProofSentBackIsNone(t *testing.T) {
	a, b := net.Pipe()
	d := known("test 1", 7)
	go func() {
		hello := make([]byte, len(d.Protocol)+d.IDSize+NonceSize)
		io.ReadFull(b, hello)
		b.Write(nonce())
		proof := make([]byte, 32)
		io.ReadFull(b, proof)
		b.Write(proof)
	}()
	if _, err := d.Call(a, []byte("rank")); !errors.Is(err, ErrSecret) {
		t.Errorf("error %v: want %v", err, ErrSecret)
	}
}
