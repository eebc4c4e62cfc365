package mpi

import (
	"slices"
	"sync"
	"sync/atomic"

	"gompi/comm"
	"gompi/comm/internal/mpi/table"
)

// A Comm is a communicator with a handle.
type Comm struct {
	handle Handle
	p2p    *comm.Comm // messages and, within one group, collectives
	shift  int        // the number in p2p of the first rank of the remote group
	inter  *inter     // nil within one group

	making  atomic.Bool // by MPI_Comm_idup
	planned atomic.Bool // plan is in use
	plan    plan

	mu       sync.Mutex // guards the following
	name     string
	handler  *Errhandler
	topology topology
	attributes
}

var (
	world = &Comm{handle: table.CommWorld, name: "MPI_COMM_WORLD", handler: errorsAreFatal}
	self  = &Comm{handle: table.CommSelf, name: "MPI_COMM_SELF", handler: errorsAreFatal}
)

// rankOf returns the number in p2p of a rank that messages go to.
func (c *Comm) rankOf(rank int) int { return rank + c.shift }

func (c *Comm) sourceOf(rank int) int {
	if rank == anySource {
		return comm.AnySource
	}
	return c.rankOf(rank)
}

// peers returns how many ranks messages go to: those of the remote group, if there is one.
func (c *Comm) peers() int {
	if c.inter != nil {
		return c.inter.remote.Size()
	}
	return c.p2p.Size()
}

// group returns the local group.
func (c *Comm) group() comm.Group {
	if c.inter != nil {
		return c.inter.local.Group()
	}
	return c.p2p.Group()
}

// Name returns the name for messages.
func (c *Comm) Name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.name == "" && c.p2p != nil {
		return c.p2p.Name()
	}
	return c.name
}

func (c *Comm) errhandler() *Errhandler {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.handler
}

func checkComm(c *Comm) error {
	if c == nil {
		return wrong(errComm, "the communicator is not valid")
	}
	return nil
}

// checkIntra returns an error for an intercommunicator, too.
func checkIntra(c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if c.inter != nil {
		return wrong(errComm, "the communicator is an intercommunicator")
	}
	return nil
}

// adopt gives a communicator of comm a handle, with the error handler of the one it was made of. d
// is nil on a rank that is not in it.
func (c *Comm) adopt(d *comm.Comm, err error) (*Comm, error) {
	if err != nil || d == nil {
		return nil, err
	}
	n := &Comm{p2p: d, handler: c.errhandler()}
	n.handle = communicators.add(n)
	return n, nil
}

func CommSize(c *Comm) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	if c.inter != nil {
		return c.inter.local.Size(), nil
	}
	return c.p2p.Size(), nil
}

func CommRank(c *Comm) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	return c.rank(), nil
}

// rank returns this rank's number in its own group.
func (c *Comm) rank() int {
	if c.inter != nil {
		return c.inter.local.Rank()
	}
	return c.p2p.Rank()
}

func CommCompare(a, b *Comm) (int, error) {
	switch {
	case a == nil || b == nil:
		return 0, wrong(errComm, "a communicator is not valid")
	case a == b:
		return identical, nil
	case (a.inter == nil) != (b.inter == nil):
		return unequal, nil
	}
	result := compare(a.group(), b.group())
	if a.inter != nil {
		result = max(result, compare(a.inter.remote, b.inter.remote))
	}
	return max(result, congruent), nil
}

func CommDup(c *Comm) (*Comm, error) { return CommDupWithInfo(c, nil) }

// CommDupWithInfo ignores hints, as all functions do. It copies attributes, too, as their functions
// say.
func CommDupWithInfo(c *Comm, info *Info) (*Comm, error) {
	if err := checkComm(c); err != nil {
		return nil, err
	}
	d, err := c.dup()
	if err != nil {
		return nil, err
	}
	if c.topology.kind != 0 {
		if d, err = d.with(c.topology, nil); err != nil {
			return nil, err
		}
	}
	if err := c.copyAttributes(&c.mu, kindComm, c.handle, &d.attributes); err != nil {
		_ = CommFree(&d.handle)
		return nil, err
	}
	return d, nil
}

func (c *Comm) dup() (*Comm, error) {
	if c.inter != nil {
		return c.inter.dup(c)
	}
	return c.adopt(c.p2p.Dup(forever))
}

func CommSplit(c *Comm, color, key int) (*Comm, error) {
	if err := checkComm(c); err != nil {
		return nil, err
	}
	if color < 0 && color != undefined {
		return nil, wrong(errArg, "the color is %d: want 0 or more, or MPI_UNDEFINED", color)
	}
	if color == undefined {
		color = comm.Undefined
	}
	if c.inter != nil {
		return c.inter.split(c, color, key)
	}
	return c.adopt(c.p2p.Split(forever, color, key))
}

// CommSplitType knows the ranks that share memory: those of a host.
func CommSplitType(c *Comm, how, key int, info *Info) (*Comm, error) {
	if err := checkIntra(c); err != nil {
		return nil, err
	}
	switch how {
	case undefined, splitUnguided, splitGuided:
		return c.adopt(c.p2p.Split(forever, comm.Undefined, key))
	case splitShared:
		hosts := map[string]int{}
		for r := range c.p2p.Size() {
			if _, ok := hosts[c.p2p.Host(r)]; !ok {
				hosts[c.p2p.Host(r)] = r
			}
		}
		return c.adopt(c.p2p.Split(forever, hosts[c.p2p.Host(c.p2p.Rank())], key))
	}
	return nil, wrong(errArg, "the split type is not MPI_COMM_TYPE_SHARED or MPI_UNDEFINED")
}

func CommCreate(c *Comm, g *Group) (*Comm, error) {
	if err := checkComm(c); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, wrong(errGroup, "the group is not valid")
	}
	if c.inter != nil {
		return c.inter.create(c, g)
	}
	return c.adopt(c.p2p.Create(forever, g.Group))
}

func CommCreateGroup(c *Comm, g *Group, tag int) (*Comm, error) {
	if err := checkIntra(c); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, wrong(errGroup, "the group is not valid")
	}
	if !slices.Contains(g.Translate(c.group()), c.rank()) {
		return nil, nil
	}
	return c.adopt(c.p2p.CreateGroup(forever, g.Group, tag))
}

func CommFree(h *Handle) error {
	c := communicators.find(*h)
	switch {
	case c == nil:
		return wrong(errComm, "the communicator is not valid")
	case c == world || c == self:
		return wrong(errComm, "%s is not freed", c.Name())
	}
	if err := c.deleteAttributes(&c.mu, kindComm, c.handle); err != nil {
		return err
	}
	communicators.remove(*h)
	*h = communicators.null
	c.close()
	return nil
}

// CommDisconnect is CommFree: there are no connections to cut.
func CommDisconnect(h *Handle) error { return CommFree(h) }

func CommGroup(c *Comm) (*Group, error) {
	if err := checkComm(c); err != nil {
		return nil, err
	}
	return newGroup(c.group()), nil
}

func CommTestInter(c *Comm) (bool, error) {
	if err := checkComm(c); err != nil {
		return false, err
	}
	return c.inter != nil, nil
}

func CommRemoteSize(c *Comm) (int, error) {
	if err := checkInter(c); err != nil {
		return 0, err
	}
	return c.inter.remote.Size(), nil
}

func CommRemoteGroup(c *Comm) (*Group, error) {
	if err := checkInter(c); err != nil {
		return nil, err
	}
	return newGroup(c.inter.remote), nil
}

func CommSetName(c *Comm, name Text) error {
	if err := checkComm(c); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name = name.String()
	return nil
}

func CommGetName(c *Comm, name Text) (int, error) {
	if err := checkComm(c); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return name.set(c.name, face.MaxObjectName), nil
}

func CommSetInfo(c *Comm, info *Info) error { return checkComm(c) }

// CommGetInfo returns no hints, since none that was set is heeded.
func CommGetInfo(c *Comm) (*Info, error) {
	if err := checkComm(c); err != nil {
		return nil, err
	}
	return newInfo(nil), nil
}
