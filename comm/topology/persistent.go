package topology

import "gompi/comm"

// A Persistent is a neighbor collective with its buffers, which Start starts any number of times,
// each time after the last has completed. One goroutine at a time uses a Persistent.
type Persistent struct {
	sends, recvs []*comm.Persistent // nil for ProcNull
	requests     []comm.Request
}

// NeighborAlltoallwInit returns a persistent NeighborAlltoallw (MPI_Neighbor_alltoallw_init), for
// programs that exchange the same buffers in each step. It starts nothing and does not wait.
func (n *Neighborhood) NeighborAlltoallwInit(send, recv []comm.Buffer) (*Persistent, error) {
	if err := n.in.Fit("neighboralltoallwinit", send, recv); err != nil {
		return nil, err
	}
	p := &Persistent{sends: make([]*comm.Persistent, len(send)), recvs: make([]*comm.Persistent, len(recv))}
	for i, to := range n.in.Destinations {
		if to != comm.ProcNull {
			p.sends[i] = n.Messages.SendInit(to, n.in.TagTo(i), send[i])
		}
	}
	for i, from := range n.in.Sources {
		if from != comm.ProcNull {
			p.recvs[i] = n.Messages.RecvInit(from, n.in.TagFrom(i), recv[i])
		}
	}
	p.requests = make([]comm.Request, len(recv)+len(send))
	return p, nil
}

// Start starts the collective, sends first, and returns its Requests in the order of
// IneighborAlltoallw, in a slice that the next Start changes. It allocates nothing. If the last
// exchange is incomplete, the wait returns comm.ErrActive.
func (p *Persistent) Start() []comm.Request {
	for i, s := range p.sends {
		if s != nil {
			p.requests[len(p.recvs)+i] = s.Start()
		}
	}
	for i, r := range p.recvs {
		if r != nil {
			p.requests[i] = r.Start()
		}
	}
	return p.requests
}
