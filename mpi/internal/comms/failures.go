package comms

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"gompi/internal/core"
	"gompi/mpi/internal/errs"
)

// This file is ULFM (user-level failure mitigation, MPIX_Comm_shrink and the like). In core a
// death breaks each communicator that holds the dead rank. So all calls on such a communicator
// fail with MPI_ERR_PROC_FAILED, including calls between ranks that live, and none stays pending
// because of the death.

// CommRevoke breaks c on all ranks. Ranks that wait in c get MPI_ERR_REVOKED.
func CommRevoke(c *Comm) error {
	c.mu.Lock()
	c.revoked = true
	all := append(c.parts(), c.private...)
	c.mu.Unlock()
	for _, d := range all {
		d.Revoke("MPI_Comm_revoke")
	}
	return nil
}

// KeepPrivate makes communicators go with c when it is revoked, until DropPrivate.
func (c *Comm) KeepPrivate(all []*core.Comm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private = append(c.private, all...)
}

func (c *Comm) DropPrivate(all []*core.Comm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private = slices.DeleteFunc(c.private, func(d *core.Comm) bool { return slices.Contains(all, d) })
}

func CommIsRevoked(c *Comm) (bool, error) {
	known := c.Revoked() != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revoked || known, nil
}

// Revoked returns the error of calls that involve no other rank: none, unless c was revoked.
func (c *Comm) Revoked() error {
	if err := c.P2P.Err(); errs.ClassOf(err) == errs.Revoked {
		return err
	}
	return nil
}

// ---- Failed ranks ----

// CommGetFailed returns the failed ranks of both groups, in an order that is the same on all
// ranks.
func CommGetFailed(c *Comm) (*Group, error) {
	return c.failed(len(c.P2P.Dead()))
}

// failed returns the first n that have failed.
func (c *Comm) failed(n int) (*Group, error) {
	g, err := c.P2P.Group().Incl(c.P2P.Dead()[:n]...)
	if err != nil {
		return nil, err
	}
	return newGroup(g, c.session), nil
}

// CommAckFailed acknowledges the first n failed ranks, and returns their number so far.
func CommAckFailed(c *Comm, n int) (int, error) {
	dead := len(c.P2P.Dead())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = max(c.acked, min(n, dead))
	return c.acked, nil
}

func CommFailureAck(c *Comm) error {
	_, err := CommAckFailed(c, c.P2P.Size())
	return err
}

func CommFailureGetAcked(c *Comm) (*Group, error) {
	n, err := CommAckFailed(c, 0)
	if err != nil {
		return nil, err
	}
	return c.failed(n)
}

// ---- Agreements ----

// An opinion is a rank's contribution to MPI_Comm_agree, as it is sent.
type opinion struct{ Flag, Acked int32 }

const sizeOfOpinion = 8

// CommAgree makes flag the bitwise AND of the flags of all ranks that live: of the remote group,
// if there is one. CommAgree fails on all ranks if any rank has not acknowledged all the dead.
func CommAgree(c *Comm, flag *int) error {
	return c.votes.do(c.P2P, func(ctx context.Context) error { return c.agree(ctx, flag) })
}

// StartAgree calls done with the outcome of an agreement.
func (c *Comm) StartAgree(flag int, done func(flag int)) core.Request {
	return c.votes.start(c.P2P, func(ctx context.Context) error {
		err := c.agree(ctx, &flag)
		done(flag)
		return err
	})
}

func (c *Comm) agree(ctx context.Context, flag *int) error {
	acked, err := CommAckFailed(c, 0)
	if err != nil {
		return err
	}
	mine, err := binary.Append(nil, binary.LittleEndian, opinion{int32(*flag), int32(acked)})
	if err != nil {
		return err
	}
	all, dead, err := c.P2P.AgreeOn(ctx, mine)
	if err != nil {
		return err
	}
	and := int32(-1)
	for rank, text := range all {
		var o opinion
		if len(text) != sizeOfOpinion {
			continue // the rank does not live
		}
		if _, err := binary.Decode(text, binary.LittleEndian, &o); err != nil {
			return err
		}
		acked = min(acked, int(o.Acked))
		if c.Inter == nil || (rank >= c.shift && rank < c.shift+c.Peers()) {
			and &= o.Flag
		}
	}
	if *flag = int(and); dead > acked {
		return errs.New(errs.ProcFailed, "%d ranks have died, of which a rank has acknowledged %d", dead, acked)
	}
	return nil
}

// ---- Shrink ----

// CommShrink returns a communicator of the ranks that live, without attributes and topology.
func CommShrink(c *Comm) (*Comm, error) {
	n := &Comm{Holder: errs.Holder{Handler: c.Errhandler()}, session: c.session}
	if err := c.votes.do(c.P2P, func(ctx context.Context) error { return c.shrinkInto(ctx, n) }); err != nil {
		return nil, err
	}
	n.Handle = Registry.Add(n)
	return n, nil
}

// StartShrink gives a communicator its handle at once, and its parts when they are made.
func (c *Comm) StartShrink() (*Comm, core.Request) {
	n := &Comm{Holder: errs.Holder{Handler: c.Errhandler()}, session: c.session, shift: c.shift, P2P: c.P2P, Inter: c.Inter}
	n.making.Store(true) // until then its parts are c's
	n.Handle = Registry.Add(n)
	return n, c.votes.start(c.P2P, func(ctx context.Context) error {
		err := c.shrinkInto(ctx, n)
		n.making.Store(err != nil)
		return err
	})
}

// shrinkInto makes the parts of n, of the members of c that live.
func (c *Comm) shrinkInto(ctx context.Context, n *Comm) error {
	p2p, err := c.P2P.Shrink(ctx)
	if err != nil {
		return err
	}
	if c.Inter == nil {
		n.P2P = p2p
		return nil
	}
	mine := p2p.Group().Intersection(c.Inter.Local.Group())
	x := &Inter{Remote: p2p.Group().Difference(mine)}
	color, shift := 0, 0
	if c.shift > 0 { // the local group is the first
		color, shift = 1, mine.Size()
	}
	if x.Local, err = p2p.Split(ctx, color, p2p.Rank()); err == nil {
		x.Both, err = p2p.Dup(ctx)
	}
	if err == nil && x.Remote.Size() == 0 {
		err = errs.New(errs.ProcFailed, "all ranks of the remote group have died")
	}
	if err != nil {
		return errors.Join(err, p2p.Close(ctx))
	}
	n.P2P, n.Inter, n.shift = p2p, x, shift
	return nil
}
