package engine

// A fifo is a queue that reuses its memory. The zero value is empty.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) {
	if f.head > len(f.items)/2 && len(f.items) == cap(f.items) { // else growing is cheaper
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

// front returns the oldest item, the zero value if there is none.
func (f *fifo[T]) front() (v T) {
	if f.head < len(f.items) {
		v = f.items[f.head]
	}
	return v
}

// pop removes and returns the oldest item, the zero value if there is none.
func (f *fifo[T]) pop() (v T) {
	if f.head == len(f.items) {
		return v
	}
	var zero T
	v, f.items[f.head] = f.items[f.head], zero
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return v
}

// ids remembers the context ids that were added last.
type ids struct {
	in    map[uint64]bool
	order fifo[uint64]
}

// manyIDs is how many are remembered. A frame that comes later than so many
// closed communicators after its own was closed would be kept for one that is
// never created, at the price of some memory.
const manyIDs = 4096

func (s *ids) add(id uint64) {
	if s.order.len() == manyIDs {
		delete(s.in, s.order.pop())
	}
	s.order.push(id)
	s.in[id] = true
}
