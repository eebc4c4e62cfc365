package exec

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"gompi/internal/core/call"
	"gompi/internal/mem"
)

// Collectives by NCCL, if rank 0's Config.CUDA says so. NCCL serves collectives in which every rank
// has its buffers on a device of its own, on any hosts; others take another Path. The first that
// NCCL serves creates its communicator: all ranks compare their versions, rank 0 makes the unique
// id, here called the invitation, and all join by it. NCCL hangs where ranks make different calls,
// or a rank dies. Different calls are found before: the exchange of buffers' places is a part of
// the numbered call. The rank learns of a death while polling for the end, and then aborts NCCL's
// communicator.

// NCCL is a rank's NCCL for a communicator. The running collective uses it.
type NCCL struct {
	x     *Exec
	node  int // this rank's
	host  func(rank int) string
	warn  func(what string, why error)
	at    mem.CollectiveLibrary // the device of group
	words []uint64              // where the ranks' devices are, when the group was made

	group    mem.Communicator     // nil before the first collective, and after a failure
	end      mem.Event            // in the group's stream, behind the last collective
	recorded bool                 // end has been recorded
	done     func() (bool, error) // finished, made once

	out, in   []mem.Buffer // of exchanges, by rank
	sent, due []int64      // bytes of these
}

// WithoutNCCL is logged where NCCL does not serve.
const WithoutNCCL = "collectives of device memory do without NCCL"

// NewNCCL returns the NCCL of a rank of x on the given node, without opening anything. host
// returns a rank's host; warn logs problems that users should know.
func NewNCCL(x *Exec, node int, host func(rank int) string, warn func(what string, why error)) *NCCL {
	l := &NCCL{x: x, node: node, host: host, warn: warn, out: make([]mem.Buffer, x.Size),
		in: make([]mem.Buffer, x.Size), sent: make([]int64, x.Size), due: make([]int64, x.Size)}
	l.done = l.finished
	return l
}

// giveUp makes all later collectives do without NCCL. All ranks call giveUp, with the same reason.
func (l *NCCL) giveUp(why error) {
	l.x.Paths.DropNCCL()
	if l.x.Rank == 0 {
		l.warn(WithoutNCCL, why)
	}
}

// place returns the device of o's buffers, and the word for the device that this rank sends to the
// others, 0 if NCCL cannot serve.
func (l *NCCL) place(o *call.Call) (word uint64, at mem.CollectiveLibrary) {
	from, to := o.Operands(l.x.Rank)
	if from.Len() == 0 {
		from = to
	}
	if to.Len() == 0 {
		to = from
	}
	at, ok := from.Space().(mem.CollectiveLibrary)
	serves := ok && to.Space() == from.Space() && !o.Overwrites(l.x.Rank, l.x.Size)
	switch {
	case l.group == nil && serves:
		word = l.digest(at)
	case l.group != nil && (serves && at == l.at || from.Len() == 0): // empty buffers are anywhere
		word = l.words[l.x.Rank]
	}
	return word, at
}

// digest returns a word that distinguishes a device from all devices of all hosts.
func (l *NCCL) digest(at mem.CollectiveLibrary) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, l.node, at.Identity())
	return h.Sum64() | 1
}

// noteSize is the size of a rank's version of NCCL, invitationSize the size of an invitation with
// its length before.
const (
	noteSize       = 256
	invitationSize = 512
)

// setUp creates NCCL's communicator of the devices that words name, or finds that there will be
// none. Once all ranks have agreed to use NCCL, a failure is an error: others may wait inside NCCL.
func (l *NCCL) setUp(o *call.Call, words []uint64) error {
	_, at := l.place(o)
	l.at, l.words = at, words
	for r, word := range l.words {
		if first := slices.Index(l.words, word); first < r {
			l.giveUp(fmt.Errorf("ranks %d and %d (host %s) have one device: want one for each", first, r, l.host(r)))
			return nil
		}
	}
	invitation := make([]byte, invitationSize)
	if why, err := l.compare(invitation); err != nil || why != nil {
		if why != nil {
			l.giveUp(why)
		}
		return err
	}
	if err := l.x.runOnHost(new(call.Call).Bcast(0, mem.Of(invitation))); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint16(invitation)
	group, err := at.Join(invitation[2:2+n], l.x.Rank, l.x.Size)
	if err != nil {
		return l.fail(err)
	}
	l.group = group
	if err = l.x.Round.PollUntil(group.Placed); err == nil {
		l.end, err = group.Stream().NewEvent()
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// compare has all ranks exchange their version of NCCL, and returns why NCCL does not serve, nil
// if it does. Rank 0 fills in the invitation.
func (l *NCCL) compare(invitation []byte) (why, err error) {
	name, why := l.at.Library()
	if why == nil && l.x.Rank == 0 {
		why = l.invite(invitation)
	}
	note, notes := make([]byte, noteSize), make([]byte, noteSize*l.x.Size)
	if why != nil {
		note[0], name = 1, why.Error()
	}
	copy(note[1:], name)
	if err := l.x.runOnHost(new(call.Call).Allgather(mem.Of(note), mem.Of(notes))); err != nil {
		return nil, err
	}
	for r := range l.x.Size {
		theirs := notes[r*noteSize : (r+1)*noteSize]
		text, _, _ := strings.Cut(string(theirs[1:]), "\x00")
		if theirs[0] != 0 {
			return fmt.Errorf("rank %d (host %s): %s", r, l.host(r), text), nil
		}
		if !slices.Equal(theirs, notes[:noteSize]) {
			return fmt.Errorf("rank %d (host %s) has %s, and rank 0 another", r, l.host(r), text), nil
		}
	}
	return nil, nil
}

func (l *NCCL) invite(invitation []byte) error {
	b, err := l.at.Invite()
	if err == nil && len(b) > len(invitation)-2 {
		err = fmt.Errorf("an invitation of %d bytes: want %d at most", len(b), len(invitation)-2)
	}
	binary.LittleEndian.PutUint16(invitation, uint16(len(b)))
	copy(invitation[2:], b)
	return err
}

// closeGrace bounds Close's wait for other ranks to close too. NCCL's data from this rank has left
// long before.
const closeGrace = time.Second

// Close ends NCCL's communicator when no collective runs any more, and then, or after closeGrace if
// earlier, calls over. broken is the reason why the communicator is broken, nil if unbroken.
func (l *NCCL) Close(broken error, over func()) {
	if l.at == nil {
		over()
		return
	}
	late := time.AfterFunc(closeGrace, over)
	go func() { // ends when all ranks have closed
		switch {
		case l.group == nil:
		case broken != nil:
			l.group.Abort() // an error is about ranks that are gone
		default:
			l.group.Close()
		}
		if l.end != nil {
			l.end.Close()
		}
		if late.Stop() {
			over()
		}
	}()
}
