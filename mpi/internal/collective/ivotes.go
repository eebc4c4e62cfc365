package collective

import (
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/p2p"
)

// CommIagree stores the flag at its completion.
func CommIagree(c *comms.Comm, flag abi.Array) (*p2p.Request, error) {
	at := flag.Ints(1)
	if at == nil {
		return nil, errs.New(errs.Arg, "flag is NULL")
	}
	r := p2p.NewRequest(c)
	r.Op = c.StartAgree(int(at[0]), func(flag int) { at[0] = int32(flag) })
	return r, nil
}

func CommIshrink(c *comms.Comm) (*comms.Comm, *p2p.Request, error) {
	r := p2p.NewRequest(c)
	n, op := c.StartShrink()
	r.Op = op
	return n, r, nil
}
