package message

// slots maps tokens, which transports and peers hold, to Requests and messages. A token is a
// slot's index and generation, so that a stale or invented token is recognised. Token 0 is
// none.
type slots struct {
	list []slot
	free []uint32
}

type slot struct {
	gen uint32
	r   *Request
	m   *Kept
}

func (s *slots) take(r *Request, m *Kept) uint64 {
	var i uint32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = uint32(len(s.list))
		s.list = append(s.list, slot{})
	}
	sl := &s.list[i]
	sl.gen++
	if sl.gen == 0 {
		sl.gen = 1
	}
	sl.r, sl.m = r, m
	return uint64(sl.gen)<<32 | uint64(i)
}

func (s *slots) get(token uint64) (r *Request, m *Kept) {
	i, gen := uint32(token), uint32(token>>32)
	if int(i) >= len(s.list) || gen == 0 || s.list[i].gen != gen {
		return nil, nil
	}
	return s.list[i].r, s.list[i].m
}

func (s *slots) release(token uint64) {
	i := uint32(token)
	if int(i) >= len(s.list) || s.list[i].gen != uint32(token>>32) {
		return
	}
	s.list[i].r, s.list[i].m = nil, nil
	s.list[i].gen++ // stale from now on
	s.free = append(s.free, i)
}
