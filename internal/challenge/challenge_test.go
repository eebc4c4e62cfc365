package challenge

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"gompi/internal/seal"
)

// handshake runs both sides of a handshake on one connection.
func handshake(caller, callee Door, says string) (heard string, called, answered error) {
	a, b := net.Pipe()
	done := make(chan error)
	go func() {
		_, err := caller.Call(a, []byte(says))
		a.Close()
		done <- err
	}()
	session, answered := callee.Answer(b)
	b.Close()
	if answered == nil {
		heard = string(session.Says)
	}
	return heard, <-done, answered
}

func door(greeting string, secret byte) Door {
	return Door{Greeting: greeting, Secret: &[32]byte{secret}, Says: 4}
}

func TestBothKnowTheSecret(t *testing.T) {
	heard, called, answered := handshake(door("test 1", 7), door("test 1", 7), "rank")
	if heard != "rank" || called != nil || answered != nil {
		t.Errorf("heard %q; caller: %v; callee: %v; want %q and no errors", heard, called, answered, "rank")
	}
}

func TestAnotherSecretIsRefusedByBoth(t *testing.T) {
	heard, called, answered := handshake(door("test 1", 7), door("test 1", 8), "rank")
	if heard != "" || !errors.Is(called, ErrSecret) || !errors.Is(answered, ErrSecret) {
		t.Errorf("heard %q; caller: %v; callee: %v; want nothing and %v twice", heard, called, answered, ErrSecret)
	}
}

func TestAnotherGreetingIsQuoted(t *testing.T) {
	_, called, answered := handshake(door("GET /x", 7), door("test 1", 7), "rank")
	if called == nil || answered == nil || !strings.Contains(answered.Error(), `"GET /x": want "test 1"`) {
		t.Errorf("caller: %v; callee: %v; want both greetings quoted", called, answered)
	}
}

func TestACallerSaysWhatTheDoorExpects(t *testing.T) {
	var sent bytes.Buffer
	if _, err := door("test 1", 7).Call(&sent, []byte("too long")); err == nil || sent.Len() > 0 {
		t.Errorf("error %v after %d bytes: want one before anything is sent", err, sent.Len())
	}
}

// Both ends have the same keys for what follows, and no other connection has them.
func TestEachConnectionHasKeysOfItsOwn(t *testing.T) {
	seen := map[seal.Key]bool{}
	for range 3 {
		a, b := net.Pipe()
		d := door("test 1", 7)
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
	d := door("test 1", 7)
	go func() {
		hello := make([]byte, len(d.Greeting)+d.Says+NonceSize)
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
