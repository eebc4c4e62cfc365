package agent

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"gompi/internal/boot/wire"
	"gompi/internal/seg"
	"gompi/internal/sockets"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
)

// maxBacklog bounds the bytes queued for a rank that does not read. The largest message is the
// cards of all ranks of a large job.
const maxBacklog = 256 << 20

func rankFrames() wire.Frames { return wire.Frames{Limit: wire.MaxUp} }

// broadcast sends a frame to all ranks of the host with open communicators. Replacements get only
// the order to end before their briefing.
func (a *agent) broadcast(frame []byte, ending bool) {
	if a.segment == nil {
		return
	}
	for _, p := range a.ranks {
		if a.segment.State(p.local()) < seg.Closed && (!p.unbriefed || ending) {
			a.send(p, frame)
		}
	}
	a.segment.Bump() // after the news is in the sockets: see seg.Segment.Bump
}

// pass passes a frame of the launcher on to the ranks, as it is. The agent reads it to learn of
// failures, and of the ranks that have left or been replaced.
func (a *agent) pass(frame []byte) error {
	m, err := wire.Parse(frame)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *wire.Died:
		a.learnOfFailure()
	case *wire.Left:
		a.left[m.Rank] = true
	case *wire.Revoked:
		a.learnOfFailure()
		a.revoked[m.Comm] = true
	case *wire.Outcome:
		for _, r := range m.Replaced {
			a.originals.Learn(int(r.By), int(r.Dead))
		}
		a.sendOutcome(m, frame)
		return nil
	}
	a.broadcast(frame, false)
	return nil
}

// sendOutcome sends the frame of an agreement's outcome to the participants.
func (a *agent) sendOutcome(o *wire.Outcome, frame []byte) {
	for _, v := range o.Living {
		if i, ours := a.local[int(v.Rank)]; ours {
			a.send(a.ranks[i], frame)
		}
	}
	a.segment.Bump()
}

// send sends a frame to a rank, at once or when its socket has room.
func (a *agent) send(p *process, frame []byte) {
	if p.boot < 0 {
		return
	}
	if len(p.out) > maxBacklog {
		a.note("rank %d has not read its messages for long: it gets no more", p.Rank.Rank)
		a.hangUp(p)
		return
	}
	p.out = append(p.out, frame...)
	a.deliver(p)
}

// deliver writes as much as the rank's socket takes.
func (a *agent) deliver(p *process) {
	rest, err := loop.Write(p.boot, p.out)
	if err != nil {
		a.hangUp(p)
		if !p.ended {
			a.reclaim() // it has closed its communicators, and touches nothing
		}
		return
	}
	p.out = rest
	a.jam(p, len(rest) > 0)
}

// jam starts or stops polling for room in the rank's socket.
func (a *agent) jam(p *process, full bool) {
	if p.jammed == full {
		return
	}
	p.jammed = full
	events := uint32(unix.EPOLLIN)
	if full {
		events |= unix.EPOLLOUT
	}
	a.loop.Change(p.boot, events)
}

// watchRank handles the rank's messages.
func (a *agent) watchRank(p *process) error {
	return a.loop.Watch(p.boot, unix.EPOLLIN, func(events uint32) { a.readRank(p, events) })
}

func (a *agent) hangUp(p *process) {
	unix.Close(p.boot)
	p.boot, p.out, p.jammed = -1, nil, false
}

// readRank reads and handles the messages of a rank.
func (a *agent) readRank(p *process, events uint32) {
	if events&unix.EPOLLOUT != 0 && p.boot >= 0 {
		a.deliver(p)
		a.segment.Bump()
	}
	for p.boot >= 0 {
		n, err := unix.Read(p.boot, p.in.ReadBuffer(false))
		if err == unix.EINTR {
			continue
		}
		if err == unix.EAGAIN {
			return
		}
		if err != nil || n == 0 {
			a.hangUp(p)
			return
		}
		p.in.Filled(n)
		for {
			m, ok, err := wire.Next(&p.in)
			if err == nil && !ok {
				break
			}
			if err == nil {
				err = a.rankMessage(p, m)
			}
			if err != nil {
				a.note("rank %d: %v", p.Rank.Rank, err)
				a.hangUp(p)
				return
			}
		}
	}
}

// rankMessage handles one message of a rank.
func (a *agent) rankMessage(p *process, m wire.Message) error {
	switch m := m.(type) {
	case *wire.Card:
		if p.hasCard {
			return fmt.Errorf("%w: a second card", wire.ErrFrame)
		}
		p.card, p.hasCard, p.cardAt = append([]byte(nil), m.Data...), true, seg.Now()
		if p.invite != nil {
			a.passUp(p.Rank.Rank, m)
			break
		}
		a.cards++
		a.pmi.Mixed()
		for _, r := range a.absent {
			a.send(p, absence(r))
		}
		if a.cards == len(a.launch.Ranks) {
			all := &ctl.Cards{}
			for _, r := range a.ranks[:a.cards] {
				all.Data = append(all.Data, r.card)
			}
			a.report(all)
		}
	case *wire.Stacks:
		a.stacked(p, m)
	case *wire.Revoke:
		if !a.revoked[m.Comm] { // one report is enough for all ranks
			a.revoked[m.Comm] = true
			a.passUp(p.Rank.Rank, m)
		}
	case *wire.Inquire:
		if a.left[m.Rank] {
			a.send(p, wire.Append(nil, &wire.Left{Rank: m.Rank}))
			a.segment.Bump()
		} else { // the answer will go to all ranks of the host
			a.passUp(p.Rank.Rank, m)
		}
	case *wire.Detached:
		a.detached(p, m.Rank)
	case *wire.Leave, *wire.Vote, *wire.Abort:
		a.passUp(p.Rank.Rank, m)
	default:
		return fmt.Errorf("%w: unexpected %T", wire.ErrFrame, m)
	}
	return nil
}

// passUp passes a rank's message on to the launcher.
func (a *agent) passUp(rank int, m wire.Message) {
	a.report(&ctl.FromRank{Rank: rank, Time: seg.Unix(seg.Now()), Frame: wire.Append(nil, m)})
}

// absence is the frame to ranks in Init about a rank that never joins.
func absence(rank world.Rank) []byte {
	return wire.Append(nil, &wire.Died{Rank: rank, Text: "ended with status 0 and never called Init"})
}

// listen listens for ranks whose inherited descriptors were closed. Ranks do without if the host
// has no such sockets. The socket's name is abstract, so that no file is left behind.
func (a *agent) listen() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		a.address = "none: " + err.Error()
		return nil
	}
	a.listenFD, a.address = fd, fmt.Sprintf("@gompi-%s-%d-%d", a.launch.JobID, a.launch.Node, os.Getpid())
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: a.address}); err != nil {
		return fmt.Errorf("socket for ranks %q: %w", a.address, err)
	}
	if err := unix.Listen(fd, len(a.ranks)+1); err != nil {
		return fmt.Errorf("socket for ranks %q: %w", a.address, err)
	}
	return a.loop.Watch(fd, unix.EPOLLIN, func(uint32) { a.acceptCallers() })
}

// acceptCallers accepts connections from processes of this user.
func (a *agent) acceptCallers() {
	for {
		fd, _, err := unix.Accept4(a.listenFD, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		if sockets.SameUser(fd) != nil || len(a.callers) > len(a.ranks) ||
			a.loop.Watch(fd, unix.EPOLLIN, func(uint32) { a.readCaller(fd) }) != nil {
			unix.Close(fd)
			continue
		}
		frames := rankFrames()
		a.callers[fd] = &frames
	}
}

// readCaller admits a process as the rank that it names, unless that rank has joined or ended. A
// refused process gets only the segment, which shows the reason.
func (a *agent) readCaller(fd int) {
	frames := a.callers[fd]
	if frames == nil {
		return
	}
	n, err := unix.Read(fd, frames.ReadBuffer(true))
	if err == unix.EINTR || err == unix.EAGAIN {
		return
	}
	if err != nil || n == 0 {
		a.dismiss(fd)
		return
	}
	frames.Filled(n)
	m, ok, err := wire.Next(frames)
	if err == nil && !ok {
		return
	}
	at, isAttach := m.(*wire.Attach)
	if err != nil || !isAttach || int(at.Local) >= len(a.ranks) {
		a.dismiss(fd)
		return
	}
	late := a.ranks[at.Local].ended && a.segment.PID(at.Local) == 0
	taken := a.segment.State(at.Local) != seg.Starting && !late
	if err := a.passDescriptors(fd); err != nil {
		a.note("rank %d: pass descriptors: %v", a.ranks[at.Local].Rank.Rank, err)
		a.dismiss(fd)
		return
	}
	if late || taken {
		a.dismiss(fd)
		return
	}
	delete(a.callers, fd)
	a.admit(a.ranks[at.Local], fd)
}

func (a *agent) dismiss(fd int) {
	delete(a.callers, fd)
	unix.Close(fd)
}

// admit makes fd the boot socket of p.
func (a *agent) admit(p *process, fd int) {
	if p.boot >= 0 {
		a.hangUp(p)
	}
	p.boot, p.in = fd, rankFrames()
	a.loop.Rehandle(fd, func(events uint32) { a.readRank(p, events) })
	a.send(p, wire.Append(nil, a.welcome(p)))
}

// passDescriptors sends the segment and the doorbells, with one byte each.
func (a *agent) passDescriptors(fd int) error {
	return sockets.SendFDs(append([]int{a.segment.FD()}, a.bells...), func(data, oob []byte) error {
		return unix.Sendmsg(fd, data, oob, nil, unix.MSG_NOSIGNAL)
	})
}
