package comm

import (
	"context"

	"gompi/comm/internal/call"
	"gompi/comm/internal/coll"
	"gompi/comm/internal/node"
	"gompi/comm/internal/path"
)

// do runs o for a blocking call.
func (c *Comm) do(ctx context.Context, o *call.Call) error {
	err := o.Check(c.Rank(), c.Size())
	if err != nil {
		err = badArgument("%v", err)
	} else {
		err = c.turns.run(ctx, c, o)
	}
	return c.fault(o.Kind.String(), -1, err)
}

// perform runs o, whose turn it is: in a round, which numbers it, unless c's room does so. quiet is for collectives that run in the background. Its caller defers
// unwind: one deferred call in all is what a short collective can afford.
func (c *Comm) perform(ctx context.Context, o *call.Call, quiet bool) (err error) {
	c.performs = true
	if c.rounds {
		err = c.inRound(ctx, o, quiet)
	} else {
		err = c.inRoom(ctx, o, quiet)
	}
	if err != nil { // if it is this rank's alone, the others wait in vain
		c.ch.Break("failed in " + o.String() + ": " + err.Error())
	}
	c.performs = false
	return err
}

// unwind ends o if perform has not returned: a function of the user's, or a device's, has
// panicked or ended its goroutine. The others count on this rank, and whoever recovers may
// use other Comms.
func (c *Comm) unwind(o *call.Call) {
	if !c.performs {
		return
	}
	c.performs = false
	c.ch.Break("panicked, or ended its goroutine, in " + o.String())
	if c.rounds {
		c.ch.Round().End()
	} else {
		c.rec.EndCall(c.port.ticket)
	}
}

// inRoom runs o through memory that all members see.
func (c *Comm) inRoom(ctx context.Context, o *call.Call, quiet bool) error {
	a, b := o.Words()
	err := c.port.begin(ctx, a, b, o.Bytes(), quiet)
	if err == nil {
		c.room.Begin(node.Call{A: a, B: b}, quiet)
		err = c.follow(o)
	}
	c.rec.EndCall(c.port.ticket)
	return err
}

// waits returns what waits in the midst of a collective that goes through the room.
func (c *Comm) waits() waiting {
	if c.rounds {
		return c.ch.Round()
	}
	return &c.port
}

// inRound gives o the next number, compares it with what the other ranks called, and
// runs it.
func (c *Comm) inRound(ctx context.Context, o *call.Call, quiet bool) error {
	rd := c.ch.Round()
	a, b := o.Words()
	ticket := c.rec.BeginCollective(c.ch.ID, a, b, o.Bytes(), rd.Seq()+1)
	defer c.rec.EndCall(ticket)
	if err := rd.Begin(ctx, o.Fingerprint, ticket, quiet); err != nil {
		return err
	}
	var err error
	switch {
	case c.room != nil:
		err = c.inner.begin(ctx, c.room, &o.Fingerprint, ticket, quiet)
	case c.hier != nil && c.hier.Room() != nil:
		err = c.inner.begin(ctx, c.hier.Room(), &o.Fingerprint, ticket, quiet)
	}
	if err == nil {
		err = c.follow(o)
	}
	if err != nil {
		rd.Fail(err)
	}
	if ended := rd.End(); ended != nil {
		err = ended
	}
	return err
}

// follow does o as its Path says.
func (c *Comm) follow(o *call.Call) (err error) {
	p := c.paths.For(o)
	if p.Via == path.Shm && o.IsHost() {
		return c.room.Run(p, o)
	}
	if p.Ask >= path.AllOnDevices {
		if p, err = c.resolve(p, o); err != nil {
			return err
		}
	}
	switch p.Via {
	case path.NCCL:
		return c.library.do(o)
	case path.Devices:
		from, to := o.Operands(c.Rank())
		return c.devices.Run(o, from, to)
	case path.Staged:
		if p.Algorithm == path.MultiLeader {
			return c.pipeShares(p, o)
		}
		return c.pipe(p, o)
	}
	return c.carryOut(p, o)
}

// resolve returns the Path that is taken when all ranks have told where their buffers lie.
func (c *Comm) resolve(p *path.Path, o *call.Call) (*path.Path, error) {
	if p.Ask == path.OwnDevices {
		if serves, err := c.library.serves(o); serves || err != nil {
			return p, err
		}
		p = p.Otherwise
	}
	if p.Ask < path.AllOnDevices {
		return p, nil
	}
	where, err := c.whereBuffersAre(p, o)
	return p.Resolve(where), err
}

// runOnHost does o, all of which is in host memory.
func (c *Comm) runOnHost(o *call.Call) error { return c.run(c.paths.For(o).OnHost(), o) }

// run does o, all of which is in host memory, by p.
func (c *Comm) run(p *path.Path, o *call.Call) error {
	switch p.Via {
	case path.Shm:
		return c.room.Run(p, o)
	case path.Hier:
		return c.hier.Run(p, o)
	}
	return coll.Run(c.ch.Round(), p.Algorithm, o)
}
