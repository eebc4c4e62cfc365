package match

// A list is a queue of items that carry their own links, so that any of them
// is removed in constant time and queueing allocates nothing.
type list[T any] struct{ head, tail *link[T] }

// A link is an item's place in a list; item is nil while in no list.
type link[T any] struct {
	prev, next *link[T]
	item       *T
}

func (k *link[T]) queued() bool { return k.item != nil }

// push appends item, whose link for this list is k.
func (l *list[T]) push(k *link[T], item *T) {
	k.item, k.prev = item, l.tail
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.next = k
	}
	l.tail = k
}

// remove takes out the item whose link is k, which is in l.
func (l *list[T]) remove(k *link[T]) {
	if k.prev == nil {
		l.head = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		l.tail = k.prev
	} else {
		k.next.prev = k.prev
	}
	*k = link[T]{}
}

// each calls yield with every item until yield returns false, and reports whether all calls
// returned true. yield may remove its item.
func (l *list[T]) each(yield func(*T) bool) bool {
	for k := l.head; k != nil; {
		next := k.next
		if !yield(k.item) {
			return false
		}
		k = next
	}
	return true
}
