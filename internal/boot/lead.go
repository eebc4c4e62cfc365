package boot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"gompi/internal/env"
	"gompi/internal/forked"
	"gompi/internal/route"
	"gompi/internal/seal"
)

const (
	// meetTime is how long the ranks of a job have to find each other, if the
	// context does not end before.
	meetTime = 2 * time.Minute
	// reachTime bounds one attempt to reach rank 0.
	reachTime = 5 * time.Second
)

// lead is rank 0's part: it starts a server, has publish tell the others how to
// reach it, and waits until all have come. met is called then.
func lead(ctx context.Context, size int, secret [32]byte, ln net.Listener, publish func() error, met func()) (*client, error) {
	limit := meetTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*9/10) // so that all get the reason before their own contexts end
	}
	h, own := newServer(size, secret, ln, met)
	late := time.AfterFunc(limit, func() { h.giveUp(limit) })
	defer late.Stop()
	if err := publish(); err != nil {
		ln.Close()
		own.Close()
		return nil, err
	}
	s, err := newClient(ctx, own, secret)
	if err != nil {
		h.close()
		return nil, err
	}
	s.leave = func() error { h.close(); return own.Close() }
	s.report = h.pass
	return s, nil
}

// follow is every other rank's part: it looks for rank 0 where lookup says,
// until it is there. lookup returns groups of endpoints, the best first.
func follow(ctx context.Context, rank int, lookup func(context.Context) (secret [32]byte, groups [][]string, err error)) (*client, error) {
	limited, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		secret, groups, err := lookup(limited)
		var conn net.Conn
		if err == nil {
			conn, err = reachOne(limited, &secret, rank, groups)
		}
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, meetTime+reachTime) // rank 0 gives up first
			defer cancel()
			return newClient(limited, conn, secret)
		}
		if errors.Is(err, errForged) {
			return nil, err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%w, while looking for rank 0: %w", context.Cause(ctx), err)
			}
			return nil, fmt.Errorf("rank 0 is not to be found within %v: %w", meetTime, err)
		case <-time.After(pause):
		}
	}
}

// reachOne tries the groups in order, and returns the first connection to rank 0.
func reachOne(ctx context.Context, secret *[32]byte, rank int, groups [][]string) (net.Conn, error) {
	var failed []error
	for _, endpoints := range groups {
		conn, err := reach(ctx, secret, rank, endpoints)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("rank 0: %w", errors.Join(failed...))
}

// reach connects to the first endpoint that proves to be rank 0 of this job.
func reach(ctx context.Context, secret *[32]byte, rank int, endpoints []string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	type attempt struct {
		conn net.Conn
		err  error
	}
	attempts := make(chan attempt, len(endpoints))
	for _, at := range endpoints {
		go func() { // at most for reachTime
			conn, err := connect(ctx, secret, rank, at)
			attempts <- attempt{conn, err}
		}()
	}
	var failed []error
	for range endpoints {
		a := <-attempts
		if a.err != nil {
			failed = append(failed, a.err)
			continue
		}
		rest := len(endpoints) - len(failed) - 1
		cancel()
		go func() { // as long as the others take
			for range rest {
				if late := <-attempts; late.conn != nil {
					late.conn.Close()
				}
			}
		}()
		return a.conn, nil
	}
	return nil, errors.Join(failed...)
}

// connect connects to one endpoint and makes sure that it is rank 0.
func connect(ctx context.Context, secret *[32]byte, rank int, at string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	conn, err := d.DialContext(ctx, "tcp", at)
	forked.NoteConn(conn)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	session, err := serverHandshake(secret).Call(conn, binary.LittleEndian.AppendUint32(nil, uint32(rank)))
	if !stop() || err != nil {
		conn.Close()
		return nil, errors.Join(fmt.Errorf("%s", at), err)
	}
	return seal.NewConn(conn, session.Send, session.Receive), nil
}

// listen listens for the other ranks, on loopback if all are on this host.
func listen(local bool) (net.Listener, error) {
	lo, hi, err := env.Ports(env.PortRange)
	if err != nil {
		return nil, err
	}
	host := ""
	if local {
		host = route.Loopback().String()
	}
	return listenBetween(host, lo, hi)
}

// listenBetween listens on the first port of a range that is free.
func listenBetween(host string, lo, hi int) (net.Listener, error) {
	for port := lo; ; port++ {
		ln, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err == nil || port >= hi {
			return ln, err
		}
	}
}

// ticketOf returns what leads to ln.
func contactOf(ln net.Listener, secret [32]byte, local bool) *contact {
	t := &contact{secret: secret, network: network(), port: ln.Addr().(*net.TCPAddr).Port}
	if !local {
		t.addrs = ownAddrs()
	}
	return t
}
