package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/rank0"
	"gompi/internal/seal"
	"gompi/internal/seg"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// A segmentSocket is the Unix socket from which ranks without an agent get the segment and the
// doorbells of their host. The first rank of the host creates both, as agents do, and passes them
// on. The kernel chooses the abstract name, so no file is left behind. For rank 0's server, a host
// is one network namespace, and so one namespace of abstract sockets.
type segmentSocket struct{ ln net.Listener }

// shareTime bounds the time in which the ranks of a host pass their segment on. All of them have
// joined.
const shareTime = 10 * time.Second

// listenSegment opens the socket of a rank that may be the first of its host. On failure the socket
// is empty.
func listenSegment() segmentSocket {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix"})
	if err != nil {
		return segmentSocket{}
	}
	return segmentSocket{ln}
}

// name is the abstract name of the socket, "" if there is none.
func (d segmentSocket) name() string {
	if d.ln == nil {
		return ""
	}
	return d.ln.Addr().String()
}

func (d segmentSocket) close() {
	if d.ln != nil {
		d.ln.Close()
	}
}

// segmentHandshake is the handshake by which two ranks of a host prove that they belong to the job.
// Any process may connect, so the user is checked first.
func segmentHandshake(secret *[32]byte) seal.Handshake {
	return seal.Handshake{Protocol: "gompiseg1", Secret: secret}
}

// share gets the segment that the ranks of this host share. name is the socket of the host's first
// rank.
func (in *Info) share(ctx context.Context, own segmentSocket, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, shareTime)
	defer cancel()
	var s *seg.Segment
	var bells []int
	if in.LocalRank == 0 {
		s, bells, err = in.provide(ctx, own)
	} else {
		s, bells, err = in.obtain(ctx, name)
	}
	if err != nil {
		return err
	}
	if s.Ranks() != in.LocalSize || s.WorldRank(in.LocalRank) != in.Rank || !s.Rank(in.LocalRank).Join() {
		return fmt.Errorf("the host's segment has no place for rank %d, %d of %d here", in.Rank, in.LocalRank,
			in.LocalSize)
	}
	in.Segment, in.Bells, in.flight = s, bells, s.Rank(in.LocalRank)
	return nil
}

// provide creates the segment and passes it to the other ranks of this host. A rank that does not
// connect in time gets none.
func (in *Info) provide(ctx context.Context, own segmentSocket) (*seg.Segment, []int, error) {
	if own.ln == nil {
		return nil, nil, errors.New("there is no socket to pass the host's segment through")
	}
	var ranks []world.Rank
	for r := range world.Rank(in.Size) {
		if in.NodeIndex(r) == in.Node {
			ranks = append(ranks, r)
		}
	}
	s, err := seg.New(ranks)
	if err == nil && s.Without() != nil {
		err = s.Without()
		s.Close()
	}
	if err != nil {
		return nil, nil, err
	}
	bells, err := newBells(len(ranks))
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, own.close)()
	var left atomic.Int32
	if left.Store(int32(len(ranks) - 1)); left.Load() == 0 {
		return s, bells, nil
	}
	fds := append([]int{s.FD()}, bells...)
	d := sockets.Acceptor{MaxPending: len(ranks) + rank0.MorePending, Timeout: shareTime,
		Authenticate: func(conn net.Conn) func() {
			caller, ok := conn.(*net.UnixConn)
			if !ok || in.admit(caller) != nil {
				return nil
			}
			return func() {
				defer conn.Close()
				if give(ctx, caller, fds) == nil && left.Add(-1) == 0 {
					own.close()
				}
			}
		}}
	d.Serve(own.ln)
	return s, bells, nil
}

// newBells makes n doorbells. After an error newBells closes all of them, because connections need
// the descriptors.
func newBells(n int) (bells []int, err error) {
	for range n {
		bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			sockets.CloseAll(bells)
			return nil, fmt.Errorf("doorbell %d of %d: %w", len(bells)+1, n, err)
		}
		bells = append(bells, bell)
	}
	return bells, nil
}

// admit returns an error unless the peer is a rank of this host.
func (in *Info) admit(conn *net.UnixConn) error {
	if err := sockets.SameUserConn(conn); err != nil {
		return err
	}
	_, err := segmentHandshake(&in.Secret).Answer(conn)
	return err
}

// give sends descriptors to a rank of this host.
func give(ctx context.Context, conn *net.UnixConn, fds []int) error {
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	return sockets.SendFDs(fds, func(data, oob []byte) error {
		_, _, err := conn.WriteMsgUnix(data, oob, nil)
		return err
	})
}

// obtain gets the segment from the first rank of this host.
func (in *Info) obtain(ctx context.Context, name string) (*seg.Segment, []int, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return nil, nil, fmt.Errorf("the first rank of this host passes no segment on: %w", err)
	}
	defer c.Close()
	conn := c.(*net.UnixConn)
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if err := sockets.SameUserConn(conn); err != nil {
		return nil, nil, fmt.Errorf("the socket of the first rank of this host: %w", err)
	}
	var fds []int
	if _, err = segmentHandshake(&in.Secret).Call(conn, nil); err == nil {
		fds, err = sockets.ReceiveFDs(1+in.LocalSize, func(data, oob []byte) (int, int, error) {
			n, oobn, _, _, err := conn.ReadMsgUnix(data, oob)
			return n, oobn, err
		})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the first rank of this host passes no segment on: %w", err)
	}
	s, err := seg.Attach(fds[0])
	return s, fds[1:], err
}
