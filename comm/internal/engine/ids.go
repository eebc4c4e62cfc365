package engine

import "gompi/internal/fifo"

// ids remembers the context ids that were added last.
type ids struct {
	in    map[uint64]bool
	order fifo.Queue[uint64]
}

// manyIDs is how many are remembered. A frame that comes later than so many
// closed communicators after its own was closed would be kept for one that is
// never created, at the price of some memory.
const manyIDs = 4096

func (s *ids) add(id uint64) {
	if s.order.Len() == manyIDs {
		delete(s.in, s.order.Pop())
	}
	s.order.Push(id)
	s.in[id] = true
}
