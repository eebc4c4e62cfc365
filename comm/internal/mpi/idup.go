package mpi

import (
	"gompi/comm"
	"gompi/comm/internal/door"
)

func CommIdup(c *Comm) (*Comm, *Request, error) { return CommIdupWithInfo(c, nil) }

// CommIdupWithInfo gives the communicator its handle at once, and its parts when they are made.
func CommIdupWithInfo(c *Comm, info *Info) (*Comm, *Request, error) {
	if err := checkComm(c); err != nil {
		return nil, nil, err
	}
	n := &Comm{handler: c.errhandler(), shift: c.shift, topology: c.topology, p2p: c.p2p}
	n.making.Store(true) // until then its parts are c's
	n.handle = communicators.add(n)
	if err := c.copyAttributes(&c.mu, kindComm, c.handle, &n.attributes); err != nil {
		communicators.remove(n.handle)
		return nil, nil, err
	}
	if x := c.inter; x != nil {
		n.inter = &inter{local: x.local, both: x.both, remote: x.remote}
		r := newRequest(c)
		made := new(interComms)
		r.op = x.enqueue(func() error { return x.copyTo(made) })
		r.then = func(err error) error {
			if err == nil {
				n.take(made)
			}
			return err
		}
		return n, r, nil
	}
	d := &dups{of: n}
	d.start(c.p2p, &n.p2p)
	if n.topology.kind != 0 {
		d.start(c.p2p, &n.topology.messages)
	}
	return n, d.request(c), nil
}

// dups are communicators of comm that are being made.
type dups struct {
	of      *Comm
	started []comm.Request
	finish  []func(err error) error
}

// start starts to make a copy of c, which to is then.
func (d *dups) start(c *comm.Comm, to **comm.Comm) {
	r, finish := door.Of[comm.Request](c).StartDup()
	d.started = append(d.started, r)
	d.finish = append(d.finish, func(err error) error {
		made, err := finish(err)
		if err == nil {
			*to = made.(*comm.Comm)
		}
		return err
	})
}

// request returns the request for all of them.
func (d *dups) request(c *Comm) *Request {
	r := newRequest(c)
	r.op, r.others = d.started[0], d.started[1:]
	r.then = func(err error) error {
		for _, finish := range d.finish {
			if e := finish(err); err == nil {
				err = e
			}
		}
		d.of.making.Store(err != nil)
		return err
	}
	return r
}
