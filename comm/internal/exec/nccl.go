package exec

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"gompi/comm/internal/call"
	"gompi/internal/mem"
)

// Collectives by the devices' own library, NCCL, if rank 0's Config.CUDA says so. It
// serves where every rank, on whatever host, has its buffers on a device that is no
// other's. What the library cannot do goes the usual way. The first collective for which it serves
// makes the library meet: all say what they have of it, and join by an invitation of rank 0's.
//
// The library knows neither of calls that differ nor of ranks that die. The first are
// found out before it begins, since telling where buffers are is a part of the numbered
// call; of the second the rank hears while it waits, and aborts.

// NCCL is what a rank has of it for one communicator. The collective whose turn it is
// uses it.
type NCCL struct {
	x     *Exec
	node  int // this rank's
	host  func(rank int) string
	warn  func(what string, why error)
	at    mem.Grouper // the device of group
	words []uint64    // where the ranks' devices are, when the group was made

	group  mem.Group            // nil before the first collective, and after a failure
	end    mem.Mark             // of the group's queue: behind what it was given last
	marked bool                 // end is there
	done   func() (bool, error) // finished, made once

	out, in   []mem.Buffer // of exchanges, by rank
	sent, due []int64      // bytes of these
}

// WithoutNCCL is what users are told where NCCL does not serve.
const WithoutNCCL = "collectives of device memory do without NCCL"

// NewNCCL returns what a rank of x, on the given node, has of NCCL before it is used. host tells a
// rank's host; warn is told what users should know.
func NewNCCL(x *Exec, node int, host func(rank int) string, warn func(what string, why error)) *NCCL {
	l := &NCCL{x: x, node: node, host: host, warn: warn, out: make([]mem.Buffer, x.Size),
		in: make([]mem.Buffer, x.Size), sent: make([]int64, x.Size), due: make([]int64, x.Size)}
	l.done = l.finished
	return l
}

// doWithout ends the library before it has begun. All ranks know why.
func (l *NCCL) doWithout(why error) {
	l.x.Paths.DropNCCL()
	if l.x.Rank == 0 {
		l.warn(WithoutNCCL, why)
	}
}

// place returns the device of o's buffers, and what this rank tells of it: 0 if it is
// none that serves.
func (l *NCCL) place(o *call.Call) (word uint64, at mem.Grouper) {
	from, to := o.Operands(l.x.Rank)
	if from.Len() == 0 {
		from = to
	}
	if to.Len() == 0 {
		to = from
	}
	at, ok := from.Space().(mem.Grouper)
	serves := ok && to.Space() == from.Space() && !o.Overwrites(l.x.Rank, l.x.Size)
	switch {
	case l.group == nil && serves:
		word = l.digest(at)
	case l.group != nil && (serves && at == l.at || from.Len() == 0): // what is empty is anywhere
		word = l.words[l.x.Rank]
	}
	return word, at
}

// digest names a device among all hosts'.
func (l *NCCL) digest(at mem.Grouper) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, l.node, at.Identity())
	return h.Sum64() | 1
}

// noteSize is the size of what a rank says of its library, invitationSize that of an
// invitation, with its length before it.
const (
	noteSize       = 256
	invitationSize = 512
)

// meet makes the group for o, of the ranks' devices, which words name, or finds that there will be
// none. Once all have said that they can, a failure is an error: others may be waiting for this
// rank inside the library.
func (l *NCCL) meet(o *call.Call, words []uint64) error {
	_, at := l.place(o)
	l.at, l.words = at, words
	for r, word := range l.words {
		if first := slices.Index(l.words, word); first < r {
			l.doWithout(fmt.Errorf("ranks %d and %d (host %s) have one device: want one for each", first, r, l.host(r)))
			return nil
		}
	}
	invitation := make([]byte, invitationSize)
	if why, err := l.compare(invitation); err != nil || why != nil {
		if why != nil {
			l.doWithout(why)
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
	if err = l.x.Waits.Attend(group.Placed); err == nil {
		l.end, err = group.Queue().NewMark()
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// compare has all ranks say what they have of the library, and returns why it does not
// serve, nil if it does. Rank 0 fills in the invitation.
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

// closeGrace is how long Close waits for other ranks to close, too. What NCCL has still
// to send for this rank has left long before.
const closeGrace = time.Second

// Close ends the group, when no collective runs any more, and calls over when it has, or after
// closeGrace. broken is why the communicator is broken, nil while it works.
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
			l.group.Abort() // an error is that of ranks that are gone
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
