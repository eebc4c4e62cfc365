package liveness

import "gompi/internal/fifo"

// A past is what a rank knows of communicators that it does not have: those that were closed here,
// with the encoded reasons of those that were revoked, and those that were revoked before they were
// made here. It knows the last ones of both.
type past struct {
	closed  recent[[]byte]
	revoked recent[Reason]
}

// close notes that a communicator was closed here. why is the reason for which it was revoked, nil
// if it was not.
func (p *past) close(id uint64, why []byte) { p.closed.add(id, why) }

// revoke notes that a communicator was revoked which is not made here, unless it was closed. It
// reports false then.
func (p *past) revoke(id uint64, why Reason) bool {
	if p.closed.has(id) {
		return false
	}
	p.revoked.add(id, why)
	return true
}

// mayOpen reports whether frames for a communicator that does not exist here are kept for it.
func (p *past) mayOpen(id uint64) bool { return !p.revoked.has(id) && !p.closed.has(id) }

// why returns the encoded reason for which a communicator was revoked, nil if it was not.
func (p *past) why(id uint64) []byte {
	if v, ok := p.revoked.of[id]; ok {
		return v.Encode()
	}
	return p.closed.of[id]
}

// take returns why one of several communicators was revoked before it was made here, and forgets
// all of them.
func (p *past) take(ids func(yield func(uint64) bool)) (why Reason, revoked bool) {
	if len(p.revoked.of) == 0 {
		return why, false
	}
	for id := range ids {
		if v, ok := p.revoked.of[id]; ok {
			why, revoked = v, true
			delete(p.revoked.of, id)
		}
	}
	return why, revoked
}

// A recent holds what is known of the context ids that were added last.
type recent[V any] struct {
	of    map[uint64]V
	order fifo.Queue[uint64]
}

// recentIDs is how many ids a recent holds. A frame that arrives after recentIDs more communicators
// were closed would be kept for a communicator that is never created, which costs some memory. If
// one is created here that was revoked longer ago than that, the other members send the revocation.
const recentIDs = 4096

func (s *recent[V]) add(id uint64, v V) {
	if s.of == nil {
		s.of = map[uint64]V{}
	}
	if !s.has(id) {
		if s.order.Len() == recentIDs {
			delete(s.of, s.order.Pop())
		}
		s.order.Push(id)
	}
	s.of[id] = v
}

// has reports whether id is one of them.
func (s *recent[V]) has(id uint64) bool {
	_, known := s.of[id]
	return known
}
