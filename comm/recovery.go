package comm

import "context"

// Shrink returns a communicator of the members of c that live, in c's order (MPIX_Comm_shrink of
// ULFM). It is collective over those members, and works on a broken c: that is what it is for. All
// that get a communicator get the same one. A member that dies meanwhile is left out, or breaks the
// new communicator, which can be shrunk again.
//
// Shrink waits until every member of c has called it or has ended; members that wait in c for
// something else have got ErrRevoked, but those that wait in other communicators may need a Revoke.
// If ctx ends before, this rank is expected in the new communicator all the same, and breaks it.
// Later calls of Shrink, Restore and Agree on c then fail at once on this rank, which must end, so
// that the others continue without it. The ranks must be started by gompirun, or be goroutines of
// one process. A death ends the job unless gompirun has -recover. Members call Shrink and Agree of
// one c in the same order, one at a time; else all get ErrMismatch.
//
// c stays as it is; its memory is free again when it is closed. Shrink sends the launcher one
// message from each member, of about 40 bytes if the members' world ranks are consecutive, and gets
// one back, of about 30 bytes for each member.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) { return made(c.core().Shrink(ctx)) }

// Restore returns a communicator of the size of c, in which new processes have the places of
// members that died. It is Shrink in everything else: collective over the members that live, for
// broken communicators, and the same for all that get one. gompirun starts a replacement for each
// of the dead on its host, where -spares has left places. Restore waits until the replacements have
// called Init, which returns the same communicator to them, with the rank of the dead. Restored
// reports to them that they replace a rank: they have none of its data, and get it from another
// rank.
//
// Without a place that is left, Restore fails on all ranks, and Shrink remains. Members that have
// ended well are not replaced: the communicator is smaller by these. A rank whose ctx ended in
// Restore must end, as in Shrink.
func (c *Comm) Restore(ctx context.Context) (*Comm, error) { return made(c.core().Restore(ctx)) }

// Restored reports whether this process replaces a rank that died.
func (c *Comm) Restored() bool { return c.core().Restored() }

// Agree returns the bitwise AND of the flags of all members of c that live (MPIX_Comm_agree of
// ULFM). All members that get a result get the same. If members have died, Agree returns the result
// of the others, and an ErrRevoked that names one of the dead, the same on all. It works on a
// broken c, and breaks nothing. What else holds for Shrink holds for Agree.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	return c.core().Agree(ctx, flags)
}

// Revoke breaks c on all members (MPIX_Comm_revoke of ULFM): operations under way and later ones
// fail with ErrRevoked, which names this rank and the reason. A member that has learned of a death
// so calls members that wait for it in other communicators. Revoke does not wait for them. On a
// broken c it does nothing.
func (c *Comm) Revoke(reason string) { c.core().Revoke(reason) }
