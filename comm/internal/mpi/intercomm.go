package mpi

import (
	"context"
	"slices"
	"sync"

	"gompi/comm"
	"gompi/comm/internal/door"
)

// An inter is what an intercommunicator has besides p2p, the communicator of both groups for
// messages. The group that has the lowest rank of the world comes first in p2p and both.
type inter struct {
	local  *comm.Comm // of the local group
	both   *comm.Comm // of both groups, for collectives
	remote comm.Group

	mu      sync.Mutex
	queue   []func() // collectives that were started, in order
	running bool
}

func checkInter(c *Comm) error {
	if err := checkComm(c); err != nil {
		return err
	}
	if c.inter == nil {
		return wrong(errComm, "the communicator is not an intercommunicator")
	}
	return nil
}

// IntercommCreate has the leaders exchange their groups over peer, with tag, and tell their own.
func IntercommCreate(local *Comm, leader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	if err := checkIntra(local); err != nil {
		return nil, err
	}
	if leader < 0 || leader >= local.p2p.Size() {
		return nil, wrong(errRank, "the local leader %d is not from 0 to %d", leader, local.p2p.Size()-1)
	}
	theirs := []int64{0} // how many, and their ranks in the world
	if local.p2p.Rank() == leader {
		var err error
		if theirs, err = exchangeGroups(local, peer, remoteLeader, tag); err != nil {
			theirs = []int64{0}
		}
	}
	remote, err := share(local.p2p, leader, theirs)
	if err != nil {
		return nil, err
	}
	if remote.Size() == 0 {
		return nil, wrong(errRank, "the leaders could not exchange their groups")
	}
	d, err := local.p2p.Dup(forever)
	if err != nil {
		return nil, err
	}
	return local.join(d, remote, tag)
}

// ranksOf returns the numbers in the world of a group's ranks.
func ranksOf(g comm.Group) []int64 {
	ranks := make([]int64, g.Size())
	for i, r := range g.Translate(world.p2p.Group()) {
		ranks[i] = int64(r)
	}
	return ranks
}

func groupOf(ranks []int64) (comm.Group, error) {
	all := make([]int, len(ranks))
	for i, r := range ranks {
		all[i] = int(r)
	}
	return world.p2p.Group().Incl(all...)
}

// exchangeGroups is called by leaders. It returns how many ranks the other group has, and which.
func exchangeGroups(local, peer *Comm, remoteLeader, tag int) ([]int64, error) {
	if err := checkComm(peer); err != nil {
		return nil, err
	}
	if remoteLeader < 0 || remoteLeader >= peer.peers() {
		return nil, wrong(errRank, "the remote leader %d is not from 0 to %d", remoteLeader, peer.peers()-1)
	}
	to, mine := peer.rankOf(remoteLeader), ranksOf(local.group())
	r := peer.p2p.Isend(to, tag, comm.Of(mine))
	st, err := peer.p2p.Probe(forever, to, tag)
	if err != nil {
		return nil, err
	}
	theirs := make([]int64, 1+st.Count())
	theirs[0] = int64(st.Count())
	if _, err := peer.p2p.Recv(forever, to, tag, comm.Of(theirs[1:])); err != nil {
		return nil, err
	}
	_, err = r.Wait(forever)
	return theirs, err
}

// share gives all ranks of c the group that the leader has.
func share(c *comm.Comm, leader int, theirs []int64) (comm.Group, error) {
	n := theirs[:1]
	if err := c.Bcast(forever, leader, comm.Of(n)); err != nil {
		return comm.Group{}, err
	}
	ranks := make([]int64, n[0])
	copy(ranks, theirs[1:])
	if err := c.Bcast(forever, leader, comm.Of(ranks)); err != nil {
		return comm.Group{}, err
	}
	return groupOf(ranks)
}

// join makes the intercommunicator of local, which is c's or a copy of it, and remote.
func (c *Comm) join(local *comm.Comm, remote comm.Group, tag int) (*Comm, error) {
	mine := local.Group()
	if mine.Intersection(remote).Size() > 0 {
		return nil, wrong(errGroup, "the groups have ranks in common")
	}
	all, shift := mine.Union(remote), mine.Size()
	if slices.Min(ranksOf(remote)) < slices.Min(ranksOf(mine)) {
		all, shift = remote.Union(mine), 0
	}
	p2p, err := world.p2p.CreateGroup(forever, all, tag)
	if err != nil {
		return nil, err
	}
	both, err := p2p.Dup(forever)
	if err != nil {
		return nil, err
	}
	n, err := c.adopt(p2p, nil)
	n.shift, n.inter = shift, &inter{local: local, both: both, remote: remote}
	return n, err
}

// IntercommMerge numbers the group that gives false for high first, or, if both give the same, the
// one that is first in p2p.
func IntercommMerge(c *Comm, high bool) (*Comm, error) {
	if err := checkInter(c); err != nil {
		return nil, err
	}
	first := c.inter.local.Size() == c.shift // the local group is
	theirs, err := c.inter.other(boolWord(high))
	if err != nil {
		return nil, err
	}
	if theirs != boolWord(high) {
		first = !high
	}
	key := c.inter.local.Rank()
	if !first {
		key += c.p2p.Size()
	}
	return c.adopt(c.inter.both.Split(forever, 0, key))
}

func boolWord(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// other gives the other group a word, the same on all ranks of a group, and returns its word.
func (x *inter) other(word int64) (int64, error) {
	all := make([]int64, x.both.Size())
	if err := x.both.Allgather(forever, comm.Of([]int64{word}), comm.Of(all)); err != nil {
		return 0, err
	}
	return all[x.remote.Translate(x.both.Group())[0]], nil
}

func (x *inter) dup(c *Comm) (*Comm, error) {
	n := &Comm{handler: c.errhandler(), shift: c.shift, inter: &inter{remote: x.remote}}
	var made interComms
	if err := x.do(func() error { return x.copyTo(&made) }); err != nil {
		return nil, err
	}
	n.take(&made)
	n.handle = communicators.add(n)
	return n, nil
}

// interComms are the communicators of an intercommunicator.
type interComms struct{ local, p2p, both *comm.Comm }

func (x *inter) copyTo(made *interComms) (err error) {
	if made.local, err = x.local.Dup(forever); err != nil {
		return err
	}
	if made.p2p, err = x.both.Dup(forever); err != nil {
		return err
	}
	made.both, err = x.both.Dup(forever)
	return err
}

func (c *Comm) take(made *interComms) {
	c.p2p, c.inter.local, c.inter.both = made.p2p, made.local, made.both
	c.making.Store(false)
}

// split splits both groups. A color that only one group has makes no communicator.
func (x *inter) split(c *Comm, color, key int) (*Comm, error) {
	local, err := x.local.Split(forever, color, key)
	if err != nil {
		return nil, err
	}
	all := make([]int64, 2*x.both.Size())
	if err := x.both.Allgather(forever, comm.Of([]int64{int64(color), int64(key)}), comm.Of(all)); err != nil {
		return nil, err
	}
	if local == nil {
		return nil, nil
	}
	var members []int
	for _, r := range x.remote.Translate(x.both.Group()) {
		if all[2*r] == int64(color) {
			members = append(members, r)
		}
	}
	if len(members) == 0 {
		return nil, local.Close(forever)
	}
	slices.SortStableFunc(members, func(a, b int) int { return int(all[2*a+1] - all[2*b+1]) })
	remote, err := x.both.Group().Incl(members...)
	if err != nil {
		return nil, err
	}
	return c.join(local, remote, 0)
}

// create makes an intercommunicator of a part of each group.
func (x *inter) create(c *Comm, g *Group) (*Comm, error) {
	color, key := comm.Undefined, 0
	if i := slices.Index(g.Translate(x.local.Group()), x.local.Rank()); i >= 0 {
		color, key = 0, i
	}
	return x.split(c, color, key)
}

// close takes c apart when nothing is under way on it.
func (c *Comm) close() {
	for _, d := range c.parts() {
		closing.add(d)
	}
}

// closeNow closes c at the end.
func (c *Comm) closeNow(ctx context.Context) {
	for _, d := range c.parts() {
		_ = d.Close(ctx)
	}
}

func (c *Comm) parts() []*comm.Comm {
	if c.making.Load() {
		return nil
	}
	parts := []*comm.Comm{c.p2p, c.topology.messages}
	if c.inter != nil {
		parts = append(parts, c.inter.both, c.inter.local)
	}
	return slices.DeleteFunc(parts, func(d *comm.Comm) bool { return d == nil })
}

// closing are the communicators that were freed and may have messages under way.
var closing freed

type freed struct {
	mu  sync.Mutex
	all []<-chan error
}

func (f *freed) add(d *comm.Comm) {
	over := door.Of[comm.Request](d).CloseWhenIdle()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(over <-chan error) bool { return len(over) > 0 })
	f.all = append(f.all, over)
}

// wait waits until all are closed, or ctx ends.
func (f *freed) wait(ctx context.Context) {
	f.mu.Lock()
	all := f.all
	f.all = nil
	f.mu.Unlock()
	for _, over := range all {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}
