package mpi

import (
	"hash/fnv"

	"gompi/comm"
)

// fromGroup makes a communicator of ranks that need have none in common. Ranks that make several at
// once give them different texts.
func fromGroup(g *Group, text Text) (*comm.Comm, int, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text.String()))
	tag := int(h.Sum32() & tagUB)
	c, err := world.p2p.CreateGroup(forever, g.Group, tag)
	return c, tag, err
}

func checkFromGroup(g *Group, h *Errhandler) error {
	if err := checkGroups(g); err != nil {
		return err
	}
	if h == nil {
		return wrong(errArg, "the error handler is not valid")
	}
	return nil
}

func CommCreateFromGroup(g *Group, text Text, info *Info, h *Errhandler) (*Comm, error) {
	if err := checkFromGroup(g, h); err != nil || g.Size() == 0 {
		return nil, err
	}
	c, _, err := fromGroup(g, text)
	return (&Comm{handler: h}).adopt(c, err)
}

// IntercommCreateFromGroups is told the remote group on the leader alone.
func IntercommCreateFromGroups(local *Group, leader int, remote *Group, remoteLeader int, text Text, info *Info, h *Errhandler) (*Comm, error) {
	if err := checkFromGroup(local, h); err != nil {
		return nil, err
	}
	if leader < 0 || leader >= local.Size() {
		return nil, wrong(errRank, "the local leader %d is not from 0 to %d", leader, local.Size()-1)
	}
	c, tag, err := fromGroup(local, text)
	if err != nil {
		return nil, err
	}
	theirs := []int64{0} // how many, and their ranks in the world
	if c.Rank() == leader && remote != nil {
		theirs = append([]int64{int64(remote.Size())}, ranksOf(remote.Group)...)
	}
	others, err := share(c, leader, theirs)
	if err != nil {
		return nil, err
	}
	if others.Size() == 0 {
		return nil, wrong(errGroup, "the remote group is empty")
	}
	return (&Comm{handler: h}).join(c, others, tag)
}
