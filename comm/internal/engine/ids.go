package engine

import "gompi/internal/fifo"

// ids is a set of the context ids that were added last.
type ids struct {
	in    map[uint64]bool
	order fifo.Queue[uint64]
}

// manyIDs is the size of the set. A frame that arrives after so many more communicators were
// closed would be kept for a communicator that is never created, which costs some memory.
const manyIDs = 4096

func (s *ids) add(id uint64) {
	if s.order.Len() == manyIDs {
		delete(s.in, s.order.Pop())
	}
	s.order.Push(id)
	s.in[id] = true
}
