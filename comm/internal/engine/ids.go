package engine

import "gompi/internal/fifo"

// A recent holds what is known of the context ids that were added last.
type recent[V any] struct {
	of    map[uint64]V
	order fifo.Queue[uint64]
}

// manyIDs is how many ids a recent holds. A frame that arrives after so many more communicators
// were closed would be kept for a communicator that is never created, which costs some memory. Of
// one that was revoked before so many others, and is created here, the other members tell.
const manyIDs = 4096

func (s *recent[V]) add(id uint64, v V) {
	if s.of == nil {
		s.of = map[uint64]V{}
	}
	if !s.has(id) {
		if s.order.Len() == manyIDs {
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
