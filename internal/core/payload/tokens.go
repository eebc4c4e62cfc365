package payload

// Tokens maps tokens, which transports and peers hold, to operations (R) and kept messages (M). A
// token is an index and a generation, so that a stale or invented one is recognised; 0 is none.
type Tokens[R, M any] struct {
	list []named[R, M]
	free []uint32
}

// A named is the operation or the message that a token names.
type named[R, M any] struct {
	gen uint32
	r   *R
	m   *M
}

// Take returns a token of r or m.
func (t *Tokens[R, M]) Take(r *R, m *M) uint64 {
	var i uint32
	if n := len(t.free); n > 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		i = uint32(len(t.list))
		t.list = append(t.list, named[R, M]{})
	}
	x := &t.list[i]
	x.gen++
	if x.gen == 0 {
		x.gen = 1
	}
	x.r, x.m = r, m
	return uint64(x.gen)<<32 | uint64(i)
}

// Get returns the operation or the message of a token, nil if stale.
func (t *Tokens[R, M]) Get(token uint64) (r *R, m *M) {
	i, gen := uint32(token), uint32(token>>32)
	if int(i) >= len(t.list) || gen == 0 || t.list[i].gen != gen {
		return nil, nil
	}
	return t.list[i].r, t.list[i].m
}

// Release makes a token stale.
func (t *Tokens[R, M]) Release(token uint64) {
	i := uint32(token)
	if int(i) >= len(t.list) || t.list[i].gen != uint32(token>>32) {
		return
	}
	t.list[i].r, t.list[i].m = nil, nil
	t.list[i].gen++ // stale from now on
	t.free = append(t.free, i)
}

// All yields the operations and messages that tokens name, one of the two not nil. Tokens may be
// released meanwhile.
func (t *Tokens[R, M]) All(yield func(r *R, m *M) bool) {
	for i := range t.list {
		if x := t.list[i]; (x.r != nil || x.m != nil) && !yield(x.r, x.m) {
			return
		}
	}
}
