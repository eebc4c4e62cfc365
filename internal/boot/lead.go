package boot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"gompi/internal/boot/rank0"
	"gompi/internal/env"
	"gompi/internal/sockets"
)

// meetTime bounds the time in which the ranks of a job find each other. The context may end
// earlier.
const meetTime = 2 * time.Minute

// lead is rank 0's part: lead starts a server, announces its address by publish, and waits until
// all ranks have joined. Then it calls met.
func lead(ctx context.Context, size int, secret [32]byte, ln net.Listener, publish func() error,
	met func()) (*client, error) {
	limit := meetTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)*9/10) // so that all ranks get the reason before their own contexts end
	}
	job, _ := NewJob()
	h, own := rank0.New(size, job, secret, ln, met)
	late := time.AfterFunc(limit, func() { h.GiveUp(limit) })
	defer late.Stop()
	if err := publish(); err != nil {
		ln.Close()
		own.Close()
		return nil, err
	}
	s, err := newClient(ctx, own, secret)
	if err != nil {
		h.Close()
		return nil, err
	}
	s.leave = func() error { h.Close(); return own.Close() }
	s.report = h.Pass
	return s, nil
}

// follow is the part of every other rank: it tries the endpoints of lookup until rank 0 answers.
// lookup returns groups of endpoints, the best first.
func follow(ctx context.Context, rank int,
	lookup func(context.Context) (secret [32]byte, groups [][]string, err error)) (*client, error) {
	limited, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		secret, groups, err := lookup(limited)
		var conn net.Conn
		if err == nil {
			conn, err = rank0.Dial(limited, &secret, rank, groups)
		}
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, meetTime+rank0.ReachTime) // rank 0 gives up first
			defer cancel()
			return newClient(limited, conn, secret)
		}
		if errors.Is(err, rank0.ErrForged) {
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

// listen listens for the other ranks, on loopback if all are on this host.
func listen(local bool) (net.Listener, error) {
	lo, hi, err := env.Ports(env.PortRange)
	if err != nil {
		return nil, err
	}
	host := ""
	if local {
		host = sockets.Loopback().String()
	}
	return listenBetween(host, lo, hi)
}

// listenBetween listens on the first free port of a range.
func listenBetween(host string, lo, hi int) (net.Listener, error) {
	for port := lo; ; port++ {
		ln, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err == nil || port >= hi {
			return ln, err
		}
	}
}
