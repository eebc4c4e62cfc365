package collective

import (
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/infos"
	"gompi/mpi/internal/p2p"
)

func CommIdup(c *comms.Comm) (*comms.Comm, *p2p.Request, error) { return CommIdupWithInfo(c, nil) }

func CommIdupWithInfo(c *comms.Comm, info *infos.Info) (*comms.Comm, *p2p.Request, error) {
	n, d, err := c.StartDup()
	if err != nil {
		return nil, nil, err
	}
	r := p2p.NewRequest(c)
	r.Op, r.Others, r.Then = d.Started[0], d.Started[1:], d.Finished
	return n, r, nil
}
