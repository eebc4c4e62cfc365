package match

// An index finds the oldest item of a source with a tag, whatever else is queued. A walk takes less
// time where few items are queued, so the index is active only from a walk of walkMost items on
// until fewer than indexLeast are left (us a message, received in reverse order, with the index and
// by walks: 1,024 messages 0.1 and 1.2 to 1.5, 16,384 messages 0.12 and 44 to 60, 128 messages the
// same; AMD EPYC).
type index[T any] struct {
	keyOf func(*T) key
	at    func(*T) *link[T] // an item's place in its row

	active bool
	rows   []list[T] // of items whose keys have a hash, the oldest first; a power of two
	n      int       // items in them
}

// A key is a source, or AnySource, and a tag, or AnyTag.
type key uint64

func keyOf(source, tag int) key { return key(uint32(source))<<32 | key(uint32(tag)) }

const (
	walkMost   = 64
	indexLeast = 16
	rowsLeast  = 4 * walkMost // an index that is not active keeps them
)

func (x *index[T]) row(k key) *list[T] {
	const golden = 0x9e3779b97f4a7c15 // its products have bits of all of k at the top
	return &x.rows[uint64(k)*golden>>32&uint64(len(x.rows)-1)]
}

// begin makes the index active. Its caller adds all that is queued.
func (x *index[T]) begin() {
	if x.active = true; x.rows == nil {
		x.rows = make([]list[T], rowsLeast)
	}
}

// add adds an item after all items with the same key.
func (x *index[T]) add(item *T) {
	if x.n == len(x.rows) {
		x.grow()
	}
	x.n++
	x.row(x.keyOf(item)).push(x.at(item), item)
}

// grow doubles the rows. Items with the same key stay in their order.
func (x *index[T]) grow() {
	old := x.rows
	x.rows = make([]list[T], 2*len(old))
	for i := range old {
		old[i].each(func(item *T) bool {
			*x.at(item) = link[T]{}
			x.row(x.keyOf(item)).push(x.at(item), item)
			return true
		})
	}
}

// remove takes item out. The index is not active any more if few are left.
func (x *index[T]) remove(item *T) {
	x.row(x.keyOf(item)).remove(x.at(item))
	if x.n--; x.n >= indexLeast {
		return
	}
	for i := range x.rows {
		x.rows[i].each(func(item *T) bool {
			*x.at(item) = link[T]{}
			return true
		})
	}
	x.active, x.n = false, 0
	if len(x.rows) == rowsLeast {
		clear(x.rows)
	} else {
		x.rows = nil
	}
}

// find returns the oldest item with a key, nil if there is none.
func (x *index[T]) find(k key) *T {
	for l := x.row(k).head; l != nil; l = l.next {
		if x.keyOf(l.item) == k {
			return l.item
		}
	}
	return nil
}
