package liveness

import "gompi/internal/fifo"

// A past is a rank's knowledge of communicators that it does not have: closed here, with the
// encoded reasons if revoked, or revoked before they were created here. The last of both are kept.
type past struct {
	closed  recent[[]byte]
	revoked recent[Reason]
}

// close notes that a communicator was closed here. why is the reason of a revocation, or nil.
func (p *past) close(id uint64, why []byte) { p.closed.add(id, why) }

// revoke notes that a communicator was revoked which does not exist here. It reports false if the
// communicator was closed here.
func (p *past) revoke(id uint64, why Reason) bool {
	if p.closed.has(id) {
		return false
	}
	p.revoked.add(id, why)
	return true
}

// why returns the encoded reason of a communicator's revocation, nil if not revoked.
func (p *past) why(id uint64) []byte {
	if v, ok := p.revoked.of[id]; ok {
		return v.Encode()
	}
	return p.closed.of[id]
}

// take returns why a communicator, known by several ids, was revoked before it was created here,
// and forgets all these ids.
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

// A recent holds a value for each of the context ids that were added last.
type recent[V any] struct {
	of    map[uint64]V
	order fifo.Queue[uint64]
}

// recentIDs is the number of ids in a recent. A frame after recentIDs more closed communicators
// would be kept for one that is never created, which costs some memory. If one is created here that
// was revoked longer ago, the other members send the revocation.
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

// has reports whether s holds id.
func (s *recent[V]) has(id uint64) bool {
	_, known := s.of[id]
	return known
}
