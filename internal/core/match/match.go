// Package match pairs arrived messages with posted receives of a communicator, by MPI's rules: a
// receive names a source or AnySource and a tag or AnyTag; a message goes to the oldest matching
// receive, and a receive takes the oldest matching message. So messages from the same source with
// the same tag are received in the order of their arrival.
//
// The package is pure: no I/O, no locks, no clock. Nodes belong to the caller, who embeds them in
// request and message types, so queueing allocates nothing but, once, the list heads of new
// sources.
package match

import "iter"

// Wildcards of a receive. Messages have a source and a tag of at least 0.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Recv is a receive that can be queued; R is the caller's request type. A queued Recv must not
// be copied or reused.
type Recv[R any] struct {
	Source int // a rank, or AnySource
	Tag    int // a tag, or AnyTag
	Val    *R  // the request this node is part of; not looked at here

	age   uint64 // when the receive was posted, in posts
	at    link[Recv[R]]
	inRow link[Recv[R]] // of the index
}

// A Message is an arrived message that can be queued; M is the caller's message type. A queued
// Message must not be copied or reused.
type Message[M any] struct {
	Source int
	Tag    int
	Val    *M // the message this node is part of; not looked at here

	bySource, byAge link[Message[M]]
	inRow, inTagRow link[Message[M]] // of the indexes
}

// Queues holds the posted receives and the unexpected messages of a communicator. The zero value
// is empty and ready to use. Queues are not safe for concurrent use and must not be copied after
// first use.
//
// Every source has lists of its own, so a long queue of a source costs the others nothing. Within
// a source the search walks past other tags, oldest first. After a long walk, receives and
// messages are indexed by source and tag; messages by tag, too, if a receive is for AnySource.
type Queues[R, M any] struct {
	pages []*page[R, M]
	wild  list[Recv[R]]    // posted for AnySource, oldest first
	all   list[Message[M]] // unexpected from whomever, oldest first
	posts uint64

	recvs    index[Recv[R]]    // by source and tag, with AnySource and AnyTag of their own
	messages index[Message[M]] // by source and tag
	tags     index[Message[M]] // by tag
}

// pageLen sources share an allocation: a rank among thousands usually receives from few, so heads
// for all of them would be waste.
const pageLen = 16

type page[R, M any] [pageLen]source[R, M]

type source[R, M any] struct {
	posted  list[Recv[R]]
	arrived list[Message[M]]
}

// Post returns and removes the oldest message that matches r, or queues r and
// returns nil.
func (q *Queues[R, M]) Post(r *Recv[R]) *Message[M] {
	if m := q.Take(r.Source, r.Tag); m != nil {
		return m
	}
	q.posts++
	r.age = q.posts
	if r.Source == AnySource {
		q.wild.push(&r.at, r)
	} else {
		q.grow(r.Source).posted.push(&r.at, r)
	}
	if q.recvs.active {
		q.recvs.add(r)
	}
	return nil
}

// Arrive returns and removes the oldest receive that matches m, or queues m and
// returns nil.
func (q *Queues[R, M]) Arrive(m *Message[M]) *Recv[R] {
	if r := q.TakeRecv(m.Source, m.Tag); r != nil {
		return r
	}
	q.grow(m.Source).arrived.push(&m.bySource, m)
	q.all.push(&m.byAge, m)
	if q.messages.active {
		q.messages.add(m)
	}
	if q.tags.active {
		q.tags.add(m)
	}
	return nil
}

// TakeRecv removes and returns the posted receive that a message with this source and tag
// matches, nil if there is none. Unlike Arrive, TakeRecv does not queue the message.
func (q *Queues[R, M]) TakeRecv(source, tag int) *Recv[R] {
	var r *Recv[R]
	if s := q.source(source); s != nil {
		r = q.firstRecv(&s.posted, source, tag)
	}
	if w := q.firstRecv(&q.wild, AnySource, tag); w != nil && (r == nil || w.age < r.age) {
		r = w
	}
	if r != nil {
		q.Cancel(r)
	}
	return r
}

// Awaits reports whether a receive from source is queued.
func (q *Queues[R, M]) Awaits(source int) bool {
	s := q.source(source)
	return s != nil && s.posted.head != nil
}

// Idle reports whether nothing is queued that may match a message from source, or a receive from
// source.
func (q *Queues[R, M]) Idle(source int) bool {
	if q.wild.head != nil {
		return false
	}
	s := q.source(source)
	return s == nil || s.posted.head == nil && s.arrived.head == nil
}

// Empty reports whether neither receives nor messages are queued.
func (q *Queues[R, M]) Empty() bool {
	if q.wild.head != nil || q.all.head != nil {
		return false
	}
	for _, p := range q.pages {
		for i := range p {
			if p != nil && p[i].posted.head != nil {
				return false
			}
		}
	}
	return true
}

// Cancel removes r if queued, and reports whether r was: false means that r was matched,
// cancelled or never posted. Cancel takes constant time.
func (q *Queues[R, M]) Cancel(r *Recv[R]) bool {
	if !r.at.queued() {
		return false
	}
	if r.Source == AnySource {
		q.wild.remove(&r.at)
	} else {
		q.source(r.Source).posted.remove(&r.at)
	}
	if q.recvs.active {
		q.recvs.remove(r)
	}
	return true
}

// Find returns the message that a receive with this source and tag would take, or nil, and leaves
// the message queued (MPI_Iprobe).
func (q *Queues[R, M]) Find(source, tag int) *Message[M] {
	if source == AnySource {
		return q.firstMessage(&q.all, &q.tags, source, tag)
	}
	if s := q.source(source); s != nil {
		return q.firstMessage(&s.arrived, &q.messages, source, tag)
	}
	return nil
}

// Take is Find and removes the message (MPI_Improbe).
func (q *Queues[R, M]) Take(source, tag int) *Message[M] {
	m := q.Find(source, tag)
	if m != nil {
		q.Remove(m)
	}
	return m
}

// Remove removes m if queued, and reports whether m was, in constant time.
func (q *Queues[R, M]) Remove(m *Message[M]) bool {
	if !m.byAge.queued() {
		return false
	}
	q.source(m.Source).arrived.remove(&m.bySource)
	q.all.remove(&m.byAge)
	if q.messages.active {
		q.messages.remove(m)
	}
	if q.tags.active {
		q.tags.remove(m)
	}
	return true
}

// Posted returns the queued receives: source by source, the oldest of each first, receives for
// AnySource last. The current receive may be cancelled meanwhile; nothing else may change.
func (q *Queues[R, M]) Posted() iter.Seq[*Recv[R]] {
	return func(yield func(*Recv[R]) bool) {
		for _, p := range q.pages {
			if p == nil {
				continue
			}
			for i := range p {
				if !p[i].posted.each(yield) {
					return
				}
			}
		}
		q.wild.each(yield)
	}
}

// Arrived returns the queued messages, oldest first. The current message may be removed
// meanwhile; nothing else may change.
func (q *Queues[R, M]) Arrived() iter.Seq[*Message[M]] {
	return func(yield func(*Message[M]) bool) { q.all.each(yield) }
}

// DropSource removes the receives that only source could match, because source is gone, and calls
// gone with each, oldest first. Receives for AnySource stay, and so do messages that have
// arrived.
func (q *Queues[R, M]) DropSource(source int, gone func(*Recv[R])) {
	s := q.source(source)
	if s == nil {
		return
	}
	for s.posted.head != nil {
		r := s.posted.head.item
		q.Cancel(r)
		gone(r)
	}
}

// source returns the lists of a source, nil if none were made.
func (q *Queues[R, M]) source(rank int) *source[R, M] {
	if i := rank / pageLen; i < len(q.pages) && q.pages[i] != nil {
		return &q.pages[i][rank%pageLen]
	}
	return nil
}

// grow is source, making the lists if need be.
func (q *Queues[R, M]) grow(rank int) *source[R, M] {
	i := rank / pageLen
	if i >= len(q.pages) {
		q.pages = append(q.pages, make([]*page[R, M], i+1-len(q.pages))...)
	}
	if q.pages[i] == nil {
		q.pages[i] = new(page[R, M])
	}
	return &q.pages[i][rank%pageLen]
}

// firstRecv returns the oldest receive in l, whose receives are from source, that takes a message
// with tag. A long walk makes the index, with which the next walks look at the first item alone.
func (q *Queues[R, M]) firstRecv(l *list[Recv[R]], source, tag int) *Recv[R] {
	n := 0
	for k := l.head; k != nil; k = k.next {
		if t := k.item.Tag; t == tag || t == AnyTag {
			return k.item
		}
		if n++; n == walkMost || q.recvs.active {
			return q.indexedRecv(source, tag)
		}
	}
	return nil
}

func (q *Queues[R, M]) indexedRecv(source, tag int) *Recv[R] {
	if x := &q.recvs; !x.active {
		if x.keyOf == nil {
			x.keyOf = func(r *Recv[R]) key { return keyOf(r.Source, r.Tag) }
			x.at = func(r *Recv[R]) *link[Recv[R]] { return &r.inRow }
		}
		x.begin()
		for r := range q.Posted() {
			x.add(r)
		}
	}
	r := q.recvs.find(keyOf(source, tag))
	if any := q.recvs.find(keyOf(source, AnyTag)); any != nil && (r == nil || any.age < r.age) {
		return any
	}
	return r
}

// firstMessage is firstRecv for messages, which x indexes by their keys.
func (q *Queues[R, M]) firstMessage(l *list[Message[M]], x *index[Message[M]], source, tag int) *Message[M] {
	n := 0
	for k := l.head; k != nil; k = k.next {
		if tag == AnyTag || k.item.Tag == tag {
			return k.item
		}
		if n++; n == walkMost || x.active {
			return q.indexedMessage(x, source, tag)
		}
	}
	return nil
}

func (q *Queues[R, M]) indexedMessage(x *index[Message[M]], source, tag int) *Message[M] {
	if !x.active {
		switch {
		case x.keyOf != nil:
		case x == &q.tags:
			x.keyOf = func(m *Message[M]) key { return keyOf(AnySource, m.Tag) }
			x.at = func(m *Message[M]) *link[Message[M]] { return &m.inTagRow }
		default:
			x.keyOf = func(m *Message[M]) key { return keyOf(m.Source, m.Tag) }
			x.at = func(m *Message[M]) *link[Message[M]] { return &m.inRow }
		}
		x.begin()
		for m := range q.Arrived() {
			x.add(m)
		}
	}
	return x.find(keyOf(source, tag))
}
