package boot

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/env"
	"gompi/internal/seg"
	"gompi/internal/sockets"
	"gompi/internal/world"
)

// inherited are the descriptors by which a rank reaches its agent.
type inherited struct {
	boot, seg int
	bell      int   // the first doorbell; the others follow
	bells     []int // all of them
}

// openAgent joins the job over the inherited descriptors or, if a wrapper closed them, over the
// agent's socket.
func openAgent() (Boot, error) {
	in := inherited{boot: env.FD(env.BootFD), seg: env.FD(env.SegFD), bell: env.FD(env.BellFD)}
	addr := os.Getenv(env.BootAddr)
	at, err := placeOnHost()
	if err != nil {
		return nil, err
	}
	// Children of this process are not this rank.
	if fd := env.FD(env.PMIFD); fd >= 0 {
		unix.CloseOnExec(fd)
		sockets.NoteInode(fd)
	}
	for _, name := range []string{env.BootFD, env.BootAddr, env.SegFD, env.BellFD, env.PMIFD} {
		os.Unsetenv(name)
	}
	if !in.usable(at.ranks) {
		if in, err = reconnect(addr, at.local, at.ranks); err != nil {
			return nil, fmt.Errorf("the descriptors inherited from gompirun's agent are closed, and so is the other way, its socket %q: %w", addr, err)
		}
	}
	l, err := in.join(at.local)
	if err != nil {
		return nil, err
	}
	leaveToChildren(addr)
	return l, nil
}

// A hostPlace is a rank's place on its host, from the environment.
type hostPlace struct {
	local world.LocalRank
	ranks int // of the host, with the places of replacements
}

func placeOnHost() (hostPlace, error) {
	local, err := count(env.LocalRank, 0)
	if err != nil {
		return hostPlace{}, err
	}
	ranks, err := count(env.LocalSize, 1)
	if err != nil {
		return hostPlace{}, err
	}
	spares, err := env.Int(env.Spares)
	return hostPlace{world.LocalRank(local), ranks + spares}, err
}

// count returns the value of a variable that counts ranks of this host.
func count(name string, least int) (int, error) {
	n, err := env.Int(name)
	if err == nil && (n < least || n > seg.MaxRanks) {
		err = fmt.Errorf("%s=%d: want %d to %d", name, n, least, seg.MaxRanks)
	}
	return n, err
}

// usable reports whether the descriptors are open and the agent's, not files that were opened later
// under their numbers. usable lists the doorbells, and checks only the first and the last: a
// program that closes descriptors closes one of these, too.
func (in *inherited) usable(bells int) bool {
	var st unix.Stat_t
	if in.boot < 0 || in.seg < 0 || in.bell < 0 {
		return false
	}
	domain, err := unix.GetsockoptInt(in.boot, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return false
	}
	if !seg.IsSegment(in.seg) {
		return false
	}
	if unix.Fstat(in.bell, &st) != nil || unix.Fstat(in.bell+bells-1, &st) != nil {
		return false
	}
	for i := range bells {
		in.bells = append(in.bells, in.bell+i)
	}
	return true
}

// join takes the descriptors over and returns the Boot.
func (in *inherited) join(local world.LocalRank) (*agentConn, error) {
	unix.CloseOnExec(in.boot)
	sockets.NoteInode(in.boot)
	first, last := uint(in.bells[0]), uint(in.bells[len(in.bells)-1])
	if last-first != uint(len(in.bells)-1) || unix.CloseRange(first, last, unix.CLOSE_RANGE_CLOEXEC) != nil {
		for _, fd := range in.bells { // received out of order, or a kernel before 5.11
			unix.CloseOnExec(fd)
		}
	}
	s, err := seg.Attach(in.seg)
	if err != nil {
		return nil, err
	}
	l, err := newAgentConn(in.boot, local, s, in.bells)
	if err != nil {
		s.Close()
		in.close()
	}
	return l, err
}

// close closes all descriptors but the segment's, which the Segment owns.
func (in *inherited) close() { sockets.CloseAll(append(in.bells, in.boot)) }

// reconnect gets the descriptors from the agent. The agent accepts any process of its user, which
// could read the job's memory anyway.
func reconnect(addr string, local world.LocalRank, bells int) (inherited, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return inherited{}, err
	}
	in, err := attach(fd, addr, local, bells)
	if err != nil {
		unix.Close(fd)
		return inherited{}, err
	}
	return in, nil
}

func attach(fd int, addr string, local world.LocalRank, bells int) (inherited, error) {
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		return inherited{}, fmt.Errorf("connect: %w", err)
	}
	if err := sockets.SameUser(fd); err != nil {
		return inherited{}, err
	}
	if _, err := unix.Write(fd, wire.Append(nil, &wire.Attach{Local: local})); err != nil {
		return inherited{}, err
	}
	fds, err := sockets.ReceiveFDs(1+bells, func(data, oob []byte) (int, int, error) {
		n, oobn, _, _, err := unix.Recvmsg(fd, data, oob, unix.MSG_CMSG_CLOEXEC)
		return n, oobn, err
	})
	if err != nil {
		return inherited{}, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return inherited{}, err
	}
	return inherited{boot: fd, seg: fds[0], bells: fds[1:]}, nil
}

// A stopper makes a blocking wait end with a context. nil never stops.
type stopper struct{ fd int }

// stopOn returns the stopper of ctx and its release function.
func stopOn(ctx context.Context) (*stopper, func(), error) {
	if ctx.Done() == nil {
		return nil, func() {}, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, nil, fmt.Errorf("eventfd: %w", err)
	}
	rung := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(rung)
		unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	return &stopper{fd}, func() {
		if !cancel() {
			<-rung
		}
		unix.Close(fd)
	}, nil
}

// wait blocks until fd is readable, or writable if write is set, or s rings. A plain poll call will
// do: a rank has nothing else to do until the ranks have met.
func (s *stopper) wait(fd int, write bool) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if write {
		fds[0].Events |= unix.POLLOUT
	}
	if s != nil {
		fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
		return fmt.Errorf("poll: %w", err)
	}
	if s != nil && fds[1].Revents != 0 {
		return context.Canceled // the caller asks its context for the cause
	}
	return nil
}
