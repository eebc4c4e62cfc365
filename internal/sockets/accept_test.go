package sockets

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"gompi/internal/stress"
)

// timeout bounds every wait for a certain event.
const timeout = time.Minute

// word admits callers that send one byte, and sends the byte back.
func word(conn net.Conn) func() {
	b := make([]byte, 1)
	if _, err := io.ReadFull(conn, b); err != nil {
		return nil
	}
	return func() {
		conn.Write(b)
		conn.Close()
	}
}

func open(t *testing.T, d Acceptor, ln net.Listener) {
	t.Helper()
	served := make(chan struct{})
	go func() {
		d.Serve(ln)
		close(served)
	}()
	t.Cleanup(func() {
		ln.Close()
		select {
		case <-served:
		case <-time.After(timeout):
			t.Error("Serve continues when the listener is closed")
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func dial(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(timeout))
	return conn
}

// admitted checks that who says the word gets in.
func admitted(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.Write([]byte{7})
	if b, err := io.ReadAll(conn); err != nil || len(b) != 1 || b[0] != 7 {
		t.Errorf("told %v, %v; want the word back", b, err)
	}
}

// turnedAway checks that the connection has ended without a word.
func turnedAway(t *testing.T, conn net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(conn); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("told %v, %v; want to be turned away", b, err)
	}
}

func TestTheOldestPendingConnectionMakesRoom(t *testing.T) {
	ln := listen(t)
	open(t, Acceptor{MaxPending: 3, Timeout: time.Hour, Authenticate: word}, ln)
	var conns []net.Conn
	for range 10 {
		conns = append(conns, dial(t, ln))
	}
	for _, c := range conns[:7] {
		turnedAway(t, c)
	}
	for _, c := range conns[7:] { // they are still welcome, one after the other
		admitted(t, c)
	}
	admitted(t, dial(t, ln))
}

func TestTheTimeOfAnUnprovenConnectionIsBounded(t *testing.T) {
	ln := listen(t)
	open(t, Acceptor{MaxPending: 3, Timeout: time.Millisecond, Authenticate: word}, ln)
	turnedAway(t, dial(t, ln))
}

// A caller that has authenticated is not pending any more, however many come after him and
// however long it takes.
func TestWhoIsAdmittedStays(t *testing.T) {
	ln := listen(t)
	in, on := make(chan struct{}), make(chan struct{})
	greet := func(conn net.Conn) func() {
		then := word(conn)
		if then == nil {
			return nil
		}
		return func() {
			close(in)
			<-on
			then()
		}
	}
	open(t, Acceptor{MaxPending: 1, Timeout: time.Hour, Authenticate: greet}, ln)
	first := dial(t, ln)
	first.Write([]byte{7})
	<-in
	idle := dial(t, ln)
	dial(t, ln)
	turnedAway(t, idle)
	close(on)
	if b, err := io.ReadAll(first); err != nil || len(b) != 1 {
		t.Errorf("told %v, %v; want the word back", b, err)
	}
}

func TestErrorsAreOutlivedAndReportedOnce(t *testing.T) {
	ln := &stress.Exhausted{Listener: listen(t)}
	ln.Left.Store(3)
	errs := make(chan error, 9)
	open(t, Acceptor{MaxPending: 3, Timeout: time.Hour, Authenticate: word,
		OnError: func(err error) { errs <- err }}, ln)
	admitted(t, dial(t, ln))
	if n := len(errs); n != 1 || !errors.Is(<-errs, syscall.EMFILE) {
		t.Errorf("told of %d errors, want one: %v", n, syscall.EMFILE)
	}
}

// When descriptors are exhausted, pending connections are closed.
func TestAnErrorClosesPendingConnections(t *testing.T) {
	ln := &stress.Exhausted{Listener: listen(t)}
	greeted := make(chan struct{}, 9)
	open(t, Acceptor{MaxPending: 9, Timeout: time.Hour,
		Authenticate: func(conn net.Conn) func() { greeted <- struct{}{}; return word(conn) }}, ln)
	idle := dial(t, ln)
	<-greeted
	ln.Left.Store(1)
	dial(t, ln) // Accept may have been called before: it fails the next time
	turnedAway(t, idle)
}
