package rank0

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"gompi/internal/seal"
	"gompi/internal/sockets"
)

// Dial tries the groups in order and returns the first connection to rank 0.
func Dial(ctx context.Context, secret *[32]byte, rank int, groups [][]string) (net.Conn, error) {
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

// ReachTime bounds one attempt to reach rank 0.
const ReachTime = 5 * time.Second

// reach connects to the first endpoint that proves to be rank 0 of this job.
func reach(ctx context.Context, secret *[32]byte, rank int, endpoints []string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ReachTime)
	defer cancel()
	type attempt struct {
		conn net.Conn
		err  error
	}
	attempts := make(chan attempt, len(endpoints))
	for _, at := range endpoints {
		go func() { // at most for ReachTime
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
		go func() { // until the other attempts end
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

// connect connects to one endpoint and verifies that rank 0 answers.
func connect(ctx context.Context, secret *[32]byte, rank int, at string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	conn, err := d.DialContext(ctx, "tcp", at)
	sockets.NoteConn(conn)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	session, err := Handshake(secret).Call(conn, binary.LittleEndian.AppendUint32(nil, uint32(rank)))
	if !stop() || err != nil {
		conn.Close()
		return nil, errors.Join(fmt.Errorf("%s", at), err)
	}
	return seal.NewConn(conn, session.Send, session.Receive), nil
}
