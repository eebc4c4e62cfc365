// Package fifo has the FIFO queue of all other packages.
package fifo

// A Queue is a run of items in an array. At the end of an array that is half empty, the run moves
// to the beginning; so an item moves once at most, on average, and a queue of constant length
// allocates nothing. The zero value is empty. A Queue is not for concurrent use.
type Queue[T any] struct {
	items []T
	head  int
}

func (q *Queue[T]) Len() int { return len(q.items) - q.head }

func (q *Queue[T]) Empty() bool { return q.head == len(q.items) }

// Items returns the items, the oldest first, in their memory until the next Push or Pop.
func (q *Queue[T]) Items() []T { return q.items[q.head:] }

// Push appends v and returns its address until the next Push or Pop.
func (q *Queue[T]) Push(v T) *T {
	if q.head > len(q.items)/2 && len(q.items) == cap(q.items) { // else growing is cheaper
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
	return &q.items[len(q.items)-1]
}

// Front returns the oldest item, the zero value if there is none.
func (q *Queue[T]) Front() (v T) {
	if q.head < len(q.items) {
		v = q.items[q.head]
	}
	return v
}

// Pop removes and returns the oldest item, the zero value if there is none. The queue does not keep
// the memory behind the item alive.
func (q *Queue[T]) Pop() (v T) {
	if q.head == len(q.items) {
		return v
	}
	var zero T
	v, q.items[q.head] = q.items[q.head], zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}
