package coll

import "gompi/internal/mem"

// A swing moves a vector between recv and a scratch buffer, because it is being
// sent while its successor is made, so that after a known number of steps it is
// in recv.
type swing struct {
	now         mem.Buffer // the vector
	recv, other mem.Buffer
	steps       int // still to come
}

// newSwing starts with the vector in send, which is not written unless it is
// recv.
func newSwing(p Peers, send, recv mem.Buffer, steps int) (swing, error) {
	s := swing{now: send, recv: recv, steps: steps}
	inPlace := mem.Same(send, recv)
	if steps > 1 || steps == 1 && inPlace {
		s.other = p.Scratch(send, send.Len())
	}
	switch {
	case steps == 0:
		s.now = recv
	case steps%2 == 1 && inPlace: // the first step leads to recv
		s.now = s.other
	}
	return s, move(s.now, send)
}

// next returns where the vector's successor is to be made.
func (s *swing) next() mem.Buffer {
	s.now = s.recv
	if s.steps--; s.steps%2 == 1 {
		s.now = s.other
	}
	return s.now
}
