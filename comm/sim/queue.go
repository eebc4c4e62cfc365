package sim

// A queue is elements in an order, of which mostly one of the first is taken.
type queue[T any] struct {
	all  []T
	head int // those before have been taken
}

func (q *queue[T]) push(x T)     { q.all = append(q.all, x) }
func (q *queue[T]) waiting() []T { return q.all[q.head:] }

// take removes the i-th of those that wait.
func (q *queue[T]) take(i int) (x T) {
	at := q.head + i
	x = q.all[at]
	copy(q.all[q.head+1:at+1], q.all[q.head:at])
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return x
}
