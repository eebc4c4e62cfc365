package group

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// A Maker exchanges the Members of new groups of a communicator's ranks, without the other ranks:
// by messages of a Channel of their own, which every rank opens for its first group, and closes
// with the parent.
type Maker struct {
	Parent *message.Channel

	mu     sync.Mutex
	ch     *message.Channel
	closed bool
}

// channel returns the Channel for the messages.
func (m *Maker) channel() (*message.Channel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, liveness.ErrClosed
	}
	if m.ch == nil {
		m.ch = m.open()
	}
	return m.ch, m.ch.Err()
}

func (m *Maker) open() *message.Channel {
	return m.Parent.Engine.Open(liveness.MakerID(m.Parent.ID), Of(&m.Parent.Comm).ranks)
}

// Close ends the exchanges under way, on all ranks.
func (m *Maker) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	switch {
	case m.ch != nil:
		m.ch.Close()
	case m.Parent.Size() > 1: // ranks that wait for this rank are notified that the parent closes
		m.open().Close()
	}
}

// Exchange exchanges the Members of g, which this rank is in, and returns them in the order of its
// ranks. Exchanges at the same time differ in their tags. After a failure, offered reports whether
// other ranks have got mine, or may get it.
func (m *Maker) Exchange(ctx context.Context, g Group, tag int, mine Member) (all []Member, offered bool, err error) {
	ch, err := m.channel()
	if err != nil {
		return nil, false, err
	}
	x := exchange{ch, Of(&m.Parent.Comm), g, tag}
	if first := x.parent.Index(slices.Min(g.ranks)); ch.Rank() != first {
		return x.join(ctx, first, mine)
	}
	return x.gather(ctx, mine)
}

// An exchange is a call of Exchange. Each rank sends its Member and the group as given by the
// caller. Each such message gets an answer: the outcome and, if the group is created, all its
// Members, or else the reason as text.
type exchange struct {
	ch     *message.Channel
	parent Group
	g      Group
	tag    int
}

// The outcomes.
const (
	groupMade = iota
	groupGivenUp
	groupMismatch
)

const maxReasonText = 256

// join sends mine to rank first, and receives the Members. The send is synchronous: a message
// left behind would match a receive of a later call. The receive of the answer stays posted if ctx
// ends, for the same reason.
func (x *exchange) join(ctx context.Context, first int, mine Member) ([]Member, bool, error) {
	if err := x.ch.Send(ctx, first, x.tag, mem.Bytes(append(mine.Encode(), x.g.encode()...)), true); err != nil {
		return nil, false, x.with(first, err)
	}
	answer := make([]byte, 1+max(partSize*x.g.Size(), maxReasonText))
	st, _, err := x.ch.Engine.Wait(ctx, x.ch.Irecv(first, x.tag, mem.Bytes(answer)))
	if err != nil {
		return nil, true, x.with(first, err)
	}
	switch outcome, rest := answer[0], answer[1:st.Bytes]; outcome {
	case groupMade:
		return decodeMembers(rest), true, nil
	case groupMismatch:
		return nil, true, fmt.Errorf("%w: %s", liveness.ErrMismatch, rest)
	default:
		return nil, true, &liveness.RevokedError{Rank: first, Host: x.ch.Host(first), Cause: string(rest)}
	}
}

// with returns the error of a message with a rank.
func (x *exchange) with(rank int, err error) error {
	return fmt.Errorf("with rank %d (host %s): %w", rank, x.ch.Host(rank), err)
}

// gather receives the Members of g, and sends all of them to each.
func (x *exchange) gather(ctx context.Context, mine Member) ([]Member, bool, error) {
	var members []byte
	var heard []int
	var differ string
	in := x.g.Translate(x.parent)
	for _, r := range in {
		if r == x.ch.Rank() {
			members = append(members, mine.Encode()...)
			continue
		}
		theirs, why, err := x.receive(ctx, r)
		if err != nil {
			why = fmt.Sprintf("gave up in create_group of %v with tag %d: %v", in, x.tag, err)
			_ = x.answer(ctx, heard, groupGivenUp, []byte(why[:min(len(why), maxReasonText)]))
			return nil, false, err
		}
		heard, differ = append(heard, r), cmp.Or(differ, why)
		members = append(members, theirs...)
	}
	if differ != "" {
		_ = x.answer(ctx, heard, groupMismatch, []byte(differ[:min(len(differ), maxReasonText)]))
		return nil, false, fmt.Errorf("%w: %s", liveness.ErrMismatch, differ)
	}
	return decodeMembers(members), true, x.answer(ctx, heard, groupMade, members)
}

// answer sends an outcome to ranks. If ctx ends, the messages still leave.
func (x *exchange) answer(ctx context.Context, ranks []int, outcome byte, rest []byte) error {
	b, hs := mem.Bytes(append([]byte{outcome}, rest...)), make([]message.Handle, len(ranks))
	for i, r := range ranks {
		hs[i] = x.ch.Isend(r, x.tag, b, false)
	}
	failed, err := x.ch.Engine.WaitAll(ctx, len(hs), func(i int) message.Handle { return hs[i] })
	if failed >= 0 && err != nil {
		return x.with(ranks[failed], err)
	}
	return err
}

// receive receives the encoded Member of rank r, and how its group differs from g, "" if equal. A
// matched message is received even if ctx ends, so that its sender gets an answer.
func (x *exchange) receive(ctx context.Context, r int) (member []byte, differs string, err error) {
	m, st, err := x.ch.Probe(ctx, r, x.tag, true, true)
	if err != nil {
		return nil, "", x.with(r, err)
	}
	got := make([]byte, st.Bytes)
	if _, err := m.Claim(context.WithoutCancel(ctx), mem.Bytes(got)); err != nil {
		return nil, "", x.with(r, err)
	}
	if theirs := got[partSize:]; !bytes.Equal(theirs, x.g.encode()) {
		differs = fmt.Sprintf("rank %d makes a group of %v, but rank %d of %v",
			x.ch.Rank(), x.g.Translate(x.parent), r, decode(theirs).Translate(x.parent))
	}
	return got[:partSize], differs, nil
}

func (g Group) encode() []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, g.ranks) // as Member.Encode
	return b
}

func decode(b []byte) Group {
	g := Group{make([]world.Rank, len(b)/binary.Size(world.None))}
	_, _ = binary.Decode(b, binary.LittleEndian, g.ranks)
	return g
}

func decodeMembers(b []byte) (members []Member) {
	for part := range slices.Chunk(b, partSize) {
		members = append(members, decodeMember(part))
	}
	return members
}
