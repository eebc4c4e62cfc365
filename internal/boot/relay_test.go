package boot

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
)

// A relay is somebody between a rank and rank 0 who does not know the secret: he hands
// on all they say, and adds to it.
type relay struct {
	ln               net.Listener
	toRank, toServer chan []byte
}

// relayTo puts one in front of an address.
func relayTo(t *testing.T, server string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	r := &relay{ln: ln, toRank: make(chan []byte), toServer: make(chan []byte)}
	go func() { // until the connection ends
		rank, err := ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", server)
		if err != nil {
			rank.Close()
			return
		}
		go pass(rank, server, r.toRank)
		pass(server, rank, r.toServer)
	}()
	return r
}

// pass passes on the bytes from one side, and inserts added.
func pass(to, from net.Conn, added <-chan []byte) {
	defer to.Close()
	came := make(chan []byte)
	go func() {
		defer close(came)
		for {
			b := make([]byte, 1<<10)
			n, err := from.Read(b)
			if n > 0 {
				came <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case b, ok := <-came:
			if !ok {
				return
			}
			to.Write(b)
		case b := <-added:
			to.Write(b)
		}
	}
}

// meetByRelay has two ranks meet, with a relay between them.
func meetByRelay(t *testing.T) (ranks [2]*client, r *relay) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secret := [32]byte{7}
	r = relayTo(t, ln.Addr().String())
	led := make(chan error, 1)
	go func() {
		var err error
		ranks[0], err = lead(ctx, 2, secret, ln, func() error { return nil }, func() {})
		led <- err
	}()
	ranks[1], err = follow(ctx, 1, func(context.Context) ([32]byte, [][]string, error) {
		return secret, [][]string{{r.ln.Addr().String()}}, nil
	})
	if err := errors.Join(err, <-led); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range ranks {
			s.conn.Close()
		}
	})
	return ranks, r
}

// A relay's additions are not believed, in either direction; the connection counts as lost.
func TestARelayGetsNoNewsIn(t *testing.T) {
	t.Run("to a rank", func(t *testing.T) {
		ranks, r := meetByRelay(t)
		r.toRank <- wire.Append(nil, &wire.Terminate{Text: "because I say so"})
		ranks[0].Revoke(7, nil) // whatever comes next shows it
		wantForged(t, ranks[1], 0)
	})
	t.Run("to rank 0", func(t *testing.T) {
		ranks, r := meetByRelay(t)
		r.toServer <- wire.Append(nil, &wire.Abort{Code: 7, Reason: "because I say so"})
		ranks[1].Revoke(7, nil)
		wantForged(t, ranks[0], 1)
	})
}

// wantForged checks that s hears that it has lost a rank, and why, and nothing else.
func wantForged(t *testing.T, s *client, lost world.Rank) {
	t.Helper()
	e := next(t, s)
	if e[0].Kind == Revoked { // rank 0 hears itself
		e = next(t, s)
	}
	if e[0].Kind != Died || e[0].Rank != lost ||
		!strings.Contains(string(e[0].Text), "data that the other end has not sent") {
		t.Errorf("rank %d hears %+v: %s", s.info.Rank, e, e[0].Text)
	}
	for _, e := range e {
		if e.Kind == Terminate {
			t.Errorf("rank %d is told to end: %s", s.info.Rank, e.Text)
		}
	}
}

// A relay that only hands on does no harm, as translated addresses do none.
func TestARelayMayHandOn(t *testing.T) {
	ranks, _ := meetByRelay(t)
	if err := ranks[1].Revoke(7, nil); err != nil {
		t.Fatal(err)
	}
	for _, s := range ranks {
		if e := next(t, s); len(e) != 1 || e[0].Kind != Revoked || e[0].Comm != 7 {
			t.Errorf("rank %d hears %+v", s.info.Rank, e)
		}
	}
}
