package comms

import (
	"hash/fnv"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// fromGroup makes a communicator of ranks that need have none in common. Ranks that make several at
// once give them different texts.
func fromGroup(g *Group, text abi.Text) (*core.Comm, int, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text.String()))
	tag := int(h.Sum32() & abi.TagUB)
	c, err := World.P2P.CreateGroup(Forever, g.Group, tag)
	return c, tag, err
}

func CommCreateFromGroup(g *Group, text abi.Text, info *infos.Info, h *errs.Errhandler) (*Comm, error) {
	if err := h.Check(errs.KindComm); err != nil || g.Size() == 0 {
		return nil, err
	}
	c, _, err := fromGroup(g, text)
	return (&Comm{Holder: errs.Holder{Handler: h}, session: g.session}).adopt(c, err)
}

// IntercommCreateFromGroups is told the remote group on the leader alone.
func IntercommCreateFromGroups(local *Group, leader int, remote *Group, remoteLeader int, text abi.Text,
	info *infos.Info, h *errs.Errhandler) (*Comm, error) {
	if err := h.Check(errs.KindComm); err != nil {
		return nil, err
	}
	if leader < 0 || leader >= local.Size() {
		return nil, errs.New(errs.Rank, "the local leader %d is not from 0 to %d", leader, local.Size()-1)
	}
	c, tag, err := fromGroup(local, text)
	if err != nil {
		return nil, err
	}
	theirs := groupWords{0, 0}
	if c.Rank() == leader && remote != nil {
		theirs = wordsOf(remote.Group, int64(tag))
	}
	ctx := In("MPI_Intercomm_create_from_groups")
	others, _, err := theirs.share(ctx, c, leader)
	if err != nil {
		return nil, err
	}
	if others.Size() == 0 {
		return nil, errs.New(errs.Group, "the remote group is empty")
	}
	return (&Comm{Holder: errs.Holder{Handler: h}, session: local.session}).join(ctx, c, others, tag)
}
