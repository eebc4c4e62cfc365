package comms

import (
	"context"
	"slices"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/internal/mem"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
)

// An Inter is the state of an intercommunicator besides P2P, the communicator of both groups for
// messages. The group with the lowest rank of the world comes first in P2P and Both.
type Inter struct {
	Local  *core.Comm // of the local group
	Both   *core.Comm // of both groups, for collectives
	Remote core.Group

	queue queue // of collectives
}

// CheckInter returns an error unless c is an intercommunicator.
func (c *Comm) CheckInter() error {
	if c != nil && c.Inter == nil {
		return errs.New(errs.Comm, "the communicator is not an intercommunicator")
	}
	return c.Check()
}

// IntercommCreate has the leaders exchange their groups over peer, with tag, and tell their own.
func IntercommCreate(local *Comm, leader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	if leader < 0 || leader >= local.P2P.Size() {
		return nil, errs.New(errs.Rank, "the local leader %d is not from 0 to %d", leader, local.P2P.Size()-1)
	}
	if tag < 0 || tag > abi.TagUB {
		return nil, errs.New(errs.Tag, "the tag %d is not from 0 to %d", tag, abi.TagUB)
	}
	ctx, theirs := In("MPI_Intercomm_create"), groupWords{0, 0}
	if local.P2P.Rank() == leader {
		if others, err := exchangeGroups(local, peer, remoteLeader, tag); err == nil {
			theirs = others
		}
	}
	remote, agreed, err := theirs.share(ctx, local.P2P, leader)
	if err != nil {
		return nil, err
	}
	if remote.Size() == 0 {
		return nil, errs.New(errs.Rank, "the leaders could not exchange their groups")
	}
	d, err := local.P2P.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return local.join(ctx, d, remote, agreed)
}

// proposed counts the tags that this rank has proposed.
var proposed atomic.Int64

// proposeTag returns a tag for a group of ranks of the world that no rank has proposed lately.
// Groups created at the same time, by several threads of a rank, differ in their tags. Tags that
// programs give to MPI_Comm_create_group are mostly low.
func proposeTag() int64 {
	n := proposed.Add(1)*int64(World.P2P.Size()) + int64(World.P2P.Rank())
	return abi.TagUB - n%(1<<30)
}

// groupWords are a group's number of ranks, the tag by which the intercommunicator with the group
// is created, and the group's ranks in the world.
type groupWords []int64

func wordsOf(g core.Group, tag int64) groupWords {
	return append(groupWords{int64(g.Size()), tag}, ranksOf(g)...)
}

// ranksOf returns the numbers in the world of a group's ranks.
func ranksOf(g core.Group) []int64 {
	ranks := make([]int64, g.Size())
	for i, r := range g.Translate(World.P2P.Group()) {
		ranks[i] = int64(r)
	}
	return ranks
}

func groupOf(ranks []int64) (core.Group, error) {
	all := make([]int, len(ranks))
	for i, r := range ranks {
		all[i] = int(r)
	}
	return World.P2P.Group().Incl(all...)
}

// exchangeGroups is called by leaders. The result is the other group, with the lower of the tags
// that the two leaders propose.
func exchangeGroups(local, peer *Comm, remoteLeader, tag int) (groupWords, error) {
	if err := peer.Check(); err != nil {
		return nil, err
	}
	if remoteLeader < 0 || remoteLeader >= peer.Peers() {
		return nil, errs.New(errs.Rank, "the remote leader %d is not from 0 to %d", remoteLeader, peer.Peers()-1)
	}
	to, mine := peer.RankOf(remoteLeader), wordsOf(local.group(), proposeTag())
	r := peer.P2P.Isend(to, tag, mem.Of(mine))
	st, err := peer.P2P.Probe(Forever, to, tag)
	if err != nil {
		return nil, err
	}
	theirs := make(groupWords, st.Count())
	if _, err := peer.P2P.Recv(Forever, to, tag, mem.Of(theirs)); err != nil {
		return nil, err
	}
	theirs[1] = min(mine[1], theirs[1])
	_, err = r.Wait(Forever)
	return theirs, err
}

// share gives all ranks of c the group and the tag that the leader has.
func (w groupWords) share(ctx context.Context, c *core.Comm, leader int) (g core.Group, tag int, err error) {
	head := w[:2]
	if err := c.Do(ctx, new(call.Call).Bcast(leader, mem.Of(head))); err != nil {
		return g, 0, err
	}
	ranks := make([]int64, head[0])
	copy(ranks, w[2:])
	if err := c.Do(ctx, new(call.Call).Bcast(leader, mem.Of(ranks))); err != nil {
		return g, 0, err
	}
	g, err = groupOf(ranks)
	return g, int(head[1]), err
}

// join creates the intercommunicator of local, which is c's or a copy of c's, and remote, by a
// tag that all ranks of both agree on.
func (c *Comm) join(ctx context.Context, local *core.Comm, remote core.Group, tag int) (*Comm, error) {
	mine := local.Group()
	if mine.Intersection(remote).Size() > 0 {
		return nil, errs.New(errs.Group, "the groups have ranks in common")
	}
	all, shift := mine.Union(remote), mine.Size()
	if slices.Min(ranksOf(remote)) < slices.Min(ranksOf(mine)) {
		all, shift = remote.Union(mine), 0
	}
	p2p, err := World.P2P.CreateGroup(ctx, all, tag)
	if err != nil {
		return nil, err
	}
	both, err := p2p.Dup(ctx)
	if err != nil {
		return nil, err
	}
	n := &Comm{P2P: p2p, Holder: errs.Holder{Handler: c.Errhandler()}, session: c.session, shift: shift,
		Inter: &Inter{Local: local, Both: both, Remote: remote}}
	n.Handle = Registry.Add(n)
	return n, nil
}

// IntercommMerge gives the lower ranks to the group that passes false for high or, if both pass the
// same, to the first group in P2P.
func IntercommMerge(c *Comm, high bool) (*Comm, error) {
	first := c.Inter.Local.Size() == c.shift // the local group is
	var merged *core.Comm
	err := c.Inter.Do(func(context.Context) error {
		ctx := In("MPI_Intercomm_merge")
		theirs, err := c.Inter.other(ctx, boolWord(high))
		if err != nil {
			return err
		}
		if theirs != boolWord(high) {
			first = !high
		}
		key := c.Inter.Local.Rank()
		if !first {
			key += c.P2P.Size()
		}
		merged, err = c.Inter.Both.Split(ctx, 0, key)
		return err
	})
	return c.adopt(merged, err)
}

func boolWord(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// other exchanges a word, the same on all ranks of a group, for the other group's word.
func (x *Inter) other(ctx context.Context, word int64) (int64, error) {
	all, err := x.gather(ctx, word)
	if err != nil {
		return 0, err
	}
	return all[x.Remote.Translate(x.Both.Group())[0]], nil
}

// gather returns the words of all ranks of both groups.
func (x *Inter) gather(ctx context.Context, mine ...int64) (all []int64, err error) {
	all = make([]int64, len(mine)*x.Both.Size())
	return all, x.Both.Do(ctx, new(call.Call).Allgather(mem.Of(mine), mem.Of(all)))
}

func (x *Inter) dup(c *Comm) (*Comm, error) {
	n := &Comm{Holder: errs.Holder{Handler: c.Errhandler()}, shift: c.shift, session: c.session, Inter: &Inter{Remote: x.Remote}}
	var made interComms
	if err := x.Do(func(ctx context.Context) error { return x.copyTo(ctx, &made) }); err != nil {
		return nil, err
	}
	n.take(&made)
	n.Handle = Registry.Add(n)
	return n, nil
}

// interComms are the communicators of an intercommunicator.
type interComms struct{ local, p2p, both *core.Comm }

func (x *Inter) copyTo(ctx context.Context, made *interComms) (err error) {
	if made.p2p, err = x.Both.Dup(ctx); err != nil {
		return err
	}
	if made.both, err = x.Both.Dup(ctx); err != nil {
		return err
	}
	made.local, err = x.Local.Dup(ctx)
	return err
}

// Copy returns a copy of x for collectives alone.
func (x *Inter) Copy(in context.Context) (*Inter, error) {
	n := &Inter{Remote: x.Remote}
	return n, x.Do(func(context.Context) (err error) {
		if n.Both, err = x.Both.Dup(in); err != nil {
			return err
		}
		n.Local, err = x.Local.Dup(in)
		return err
	})
}

func (c *Comm) take(made *interComms) {
	c.P2P, c.Inter.Local, c.Inter.Both = made.p2p, made.local, made.both
	c.making.Store(false)
}

// split splits both groups, for a function of MPI. A color of only one group makes no
// communicator.
func (x *Inter) split(of calls.Kind, c *Comm, color, key int) (*Comm, error) {
	const words = 3 // color, key, and the tag that the rank proposes
	var local *core.Comm
	var all []int64
	err := x.Do(func(ctx context.Context) (err error) {
		ctx = core.Within(ctx, of)
		if all, err = x.gather(ctx, int64(color), int64(key), proposeTag()); err == nil {
			local, err = x.Local.Split(ctx, color, key)
		}
		return err
	})
	if err != nil || local == nil {
		return nil, err
	}
	tag := int64(abi.TagUB) // the lowest tag of the ranks with the color
	for r := range x.Both.Size() {
		if all[words*r] == int64(color) {
			tag = min(tag, all[words*r+2])
		}
	}
	var members []int
	for _, r := range x.Remote.Translate(x.Both.Group()) {
		if all[words*r] == int64(color) {
			members = append(members, r)
		}
	}
	if len(members) == 0 {
		return nil, local.Close(Forever)
	}
	slices.SortStableFunc(members, func(a, b int) int { return int(all[words*a+1] - all[words*b+1]) })
	remote, err := x.Both.Group().Incl(members...)
	if err != nil {
		return nil, err
	}
	return c.join(core.Within(Forever, of), local, remote, int(tag))
}

// create makes an intercommunicator of a part of each group.
func (x *Inter) create(c *Comm, g *Group) (*Comm, error) {
	color, key := core.Undefined, 0
	if i := slices.Index(g.Translate(x.Local.Group()), x.Local.Rank()); i >= 0 {
		color, key = 0, i
	}
	return x.split(calls.Create, c, color, key)
}
