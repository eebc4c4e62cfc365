package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/wire"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// A client is a rank's PMI-1 connection, for programs of the MPICH family. Ranks of gompi have
// one, too, and send nothing.
type client struct {
	*pmi.Client
	fd int // our end of the socket, -1 when closed
	in pmi.Lines
	// over reports that the process has ended without a message. Other processes with the socket are
	// too late.
	over bool
}

// abnormal bounds the agent's wait, after the close of a client's socket, for the process to end,
// because the exit status is the better explanation.
const abnormal = time.Second

// connectClient makes p's PMI socket and returns the rank's end of it.
func (a *agent) connectClient(p *process) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socketpair: %w", err)
	}
	p.pmi.fd = pair[0] // both ends block, as clients expect; we pass MSG_DONTWAIT
	return pair[1], a.loop.Watch(p.pmi.fd, unix.EPOLLIN, func(uint32) { a.readClient(p) })
}

func (a *agent) hangUpClient(p *process) {
	if p.pmi.fd >= 0 {
		unix.Close(p.pmi.fd)
		p.pmi.fd = -1
	}
}

// dropClient hangs up on a client that violates the protocol.
func (a *agent) dropClient(p *process, err error) {
	a.note("rank %d: %v", p.Rank.Rank, err)
	a.hangUpClient(p)
}

// readClient reads and answers a rank's PMI-1 commands.
func (a *agent) readClient(p *process) {
	for p.pmi.fd >= 0 {
		n, _, err := unix.Recvfrom(p.pmi.fd, a.buf[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return
		}
		if err != nil || n == 0 {
			a.lostClient(p)
			return
		}
		if p.pmi.over {
			a.turnAway(p)
			a.hangUpClient(p)
			return
		}
		p.pmi.in.Add(a.buf[:n])
		for p.pmi.fd >= 0 {
			line, ok, err := p.pmi.in.Next()
			if err == nil && !ok {
				break
			}
			if err == nil {
				err = a.pmi.Serve(p.pmi.Client, string(line))
			}
			if err != nil {
				a.dropClient(p, err)
			}
		}
	}
}

// readLast reads the last commands of an ended process.
func (a *agent) readLast(p *process) {
	a.readClient(p)
	p.pmi.over = p.pmi.State() == pmi.Silent
}

// turnAway reports a program that came in the place of a rank whose process had already ended:
// something had put the program into the background without waiting for it.
func (a *agent) turnAway(p *process) {
	if p.late {
		return
	}
	p.late = true
	a.report(&ctl.Failed{
		Rank: p.Rank.Rank, Code: 1,
		Text: "its program began after the process that gompirun had started was over, and was turned away: " +
			"have what starts it wait for it (setsid -w; no & behind it)",
	})
}

// turnAwayLate reports the late programs that learned from the segment.
func (a *agent) turnAwayLate() {
	for _, p := range a.ranks {
		if a.segment != nil && a.segment.CameLate(p.local()) {
			a.turnAway(p)
		}
	}
}

// lostClient handles the end of a client's socket. Between MPI_Init and MPI_Finalize that is a
// failure, even if the process continues.
func (a *agent) lostClient(p *process) {
	a.hangUpClient(p)
	if p.pmi.State() != pmi.Initialized || p.ended || proc.HasEnded(p.pid) {
		return
	}
	a.loop.Aside(func() func() {
		time.Sleep(abnormal)
		return func() {
			if !p.ended && !proc.HasEnded(p.pid) {
				a.Fail(p.pmi.Client, "closed its connection to gompirun without calling MPI_Finalize")
			}
		}
	})
}

// Fail implements pmi.Callbacks.
func (a *agent) Fail(c *pmi.Client, text string) {
	a.report(&ctl.Failed{Rank: c.Rank, Code: 1, Text: text})
}

// Fence implements pmi.Callbacks.
func (a *agent) Fence(puts []string) { a.report(&ctl.Fence{Puts: puts}) }

// Abort implements pmi.Callbacks.
func (a *agent) Abort(c *pmi.Client, code int, reason string) {
	a.passUp(c.Rank, &wire.Abort{Code: code, Reason: reason})
}

// Answer implements pmi.Callbacks. Clients send one request at a time, so that their sockets
// always have room for the answer.
func (a *agent) Answer(c *pmi.Client, line []byte) {
	p := a.ranks[a.local[c.Rank]]
	n, err := unix.SendmsgN(p.pmi.fd, line, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	if err == nil && n < len(line) || err == unix.EAGAIN {
		a.dropClient(p, fmt.Errorf("it does not read the answers to its PMI requests"))
	} // any other error shows when the socket is read
}
