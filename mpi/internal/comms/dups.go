package comms

import (
	"context"

	"gompi/internal/core"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/errs"
)

// Dups are copies of communicators of core that are being made.
type Dups struct {
	of      *Comm
	Started []core.Request
	finish  []func(err error) error
}

// StartDup starts to duplicate c. The communicator gets its handle at once, and its parts when they
// are made.
func (c *Comm) StartDup() (*Comm, *Dups, error) {
	n := &Comm{Holder: errs.Holder{Handler: c.Errhandler()}, shift: c.shift, P2P: c.P2P, session: c.session}
	n.making.Store(true) // until then its parts are c's
	n.Handle = Registry.Add(n)
	if err := c.CopyAttributes(attrs.KindComm, c.Handle, &n.Attributes); err != nil {
		Registry.Remove(n.Handle)
		return nil, nil, err
	}
	d := &Dups{of: n}
	if x := c.Inter; x != nil {
		n.Inter = &Inter{Local: x.Local, Both: x.Both, Remote: x.Remote}
		d.startInter(x)
		return n, d, nil
	}
	d.start(c.P2P, &n.P2P)
	if c.Topology.Kind != 0 {
		n.Topology = c.Topology.over(c.P2P, c.Topology.Messages)
		d.start(c.P2P, &n.Topology.Messages)
	}
	return n, d, nil
}

// start starts to make a copy of c, which to is then.
func (d *Dups) start(c *core.Comm, to **core.Comm) {
	r, finish := c.StartDup()
	d.Started = append(d.Started, r)
	d.finish = append(d.finish, func(err error) error {
		made, err := finish(err)
		if err == nil {
			*to = made
		}
		return err
	})
}

// startInter starts to make the parts of a copy of x.
func (d *Dups) startInter(x *Inter) {
	made := new(interComms)
	d.Started = append(d.Started, x.Enqueue(func(ctx context.Context) error { return x.copyTo(ctx, made) }))
	d.finish = append(d.finish, func(err error) error {
		if err == nil {
			d.of.take(made)
		}
		return err
	})
}

// Finished is called at the end of the started operations.
func (d *Dups) Finished(err error) error {
	for _, finish := range d.finish {
		if e := finish(err); err == nil {
			err = e
		}
	}
	if d.of.Topology.Kind != 0 {
		d.of.Topology.Comm = d.of.P2P
	}
	d.of.making.Store(err != nil)
	return err
}
