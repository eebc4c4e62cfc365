package engine

import "gompi/internal/fifo"

// ids is a set of the context ids that were added last, with the reasons of those that were
// revoked.
type ids struct {
	in    map[uint64]bool
	why   map[uint64][]byte
	order fifo.Queue[uint64]
}

// manyIDs is the size of the set. A frame that arrives after so many more communicators were
// closed would be kept for a communicator that is never created, which costs some memory.
const manyIDs = 4096

func (s *ids) add(id uint64, why []byte) {
	if s.order.Len() == manyIDs {
		old := s.order.Pop()
		delete(s.in, old)
		delete(s.why, old)
	}
	s.order.Push(id)
	s.in[id] = true
	if why != nil {
		s.why[id] = why
	}
}
