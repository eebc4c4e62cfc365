package comm

import "context"

// Shrink returns a communicator of the living members of c, in c's order (MPIX_Comm_shrink of
// ULFM). It is collective over those members, and works on a broken c, which is its purpose. All
// members that get a communicator get the same one. A member that dies meanwhile is left out, or
// breaks the new communicator, which can be shrunk again. Shrink waits until every member of c has
// called Shrink or has ended. If c is broken, members that wait in c get ErrRevoked; members that
// wait in other communicators may need a Revoke. If ctx ends before, this rank is expected in the
// new communicator all the same, and breaks it. Later calls of Shrink, Restore and Agree on c then
// fail at once on this rank, which must end, so that the others continue without it. The ranks must
// be started by gompirun, or be goroutines of one process. A death ends the job unless gompirun has
// -recover. Members call Shrink and Agree of one c in the same order, one at a time; otherwise all
// get ErrMismatch.
//
// c stays unchanged; Close frees its memory. Shrink sends the launcher one message from each
// member, of about 40 bytes if the members' world ranks are consecutive, and gets one back, of
// about 30 bytes for each member.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) { return made(c.core().Shrink(ctx)) }

// Restore returns a communicator of the size of c, in which new processes have the places of dead
// members. In everything else Restore is Shrink: collective over the living members, for broken
// communicators, and with one result for all. gompirun starts a replacement for each dead member on
// its host, within the places that -spares provides. Restore waits until the replacements have
// called Init, which returns the same communicator to them, with the rank of the dead. Restored
// reports to them that they replace a rank: they have none of its data, and get data from another
// rank.
//
// Without a free place, Restore fails on all ranks, and Shrink remains. Members that have ended
// well are not replaced: the communicator is smaller. A rank whose ctx ended in Restore must end,
// as in Shrink.
func (c *Comm) Restore(ctx context.Context) (*Comm, error) { return made(c.core().Restore(ctx)) }

// Restored reports whether this process replaces a rank that died.
func (c *Comm) Restored() bool { return c.core().Restored() }

// Agree returns the bitwise AND of the flags of all living members of c (MPIX_Comm_agree of ULFM).
// All members that get a result get the same. If members have died, Agree returns the result of the
// others, and an ErrRevoked that names one of the dead, the same on all. It works on a broken c,
// and breaks nothing. The other rules of Shrink hold for Agree, too.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	return c.core().Agree(ctx, flags)
}

// Revoke breaks c on all members (MPIX_Comm_revoke of ULFM): operations under way and later ones
// fail with ErrRevoked, which names this rank and the reason. So a member that has learned of a
// death interrupts members that wait in other communicators. Revoke does not wait for them. On a
// broken c Revoke does nothing.
func (c *Comm) Revoke(reason string) { c.core().Revoke(reason) }
