package sim

// A queue is elements in order. Most takes are of the first elements.
type queue[T any] struct {
	all  []T
	head int // elements before head have been taken
}

func (q *queue[T]) waiting() []T { return q.all[q.head:] }
func (q *queue[T]) empty() bool  { return q.head == len(q.all) }

func (q *queue[T]) push(x T) {
	if len(q.all) == cap(q.all) && q.head > len(q.all)/2 { // a queue that is never empty
		q.all, q.head = q.all[:copy(q.all, q.waiting())], 0
	}
	q.all = append(q.all, x)
}

// take removes the i-th waiting element.
func (q *queue[T]) take(i int) (x T) {
	at := q.head + i
	x = q.all[at]
	copy(q.all[q.head+1:at+1], q.all[q.head:at])
	if q.head++; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
	return x
}
