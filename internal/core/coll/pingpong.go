package coll

import "gompi/internal/mem"

// A pingPong moves a vector between recv and a scratch buffer: each step sends it from one of them
// while its successor is received in the other. After the last step it is in recv.
type pingPong struct {
	now         mem.Buffer // the vector
	recv, other mem.Buffer
	steps       int // still to come
}

// newPingPong starts with the vector in send, which is read-only unless it is recv.
func newPingPong(p Peers, send, recv mem.Buffer, steps int) (pingPong, error) {
	s := pingPong{now: send, recv: recv, steps: steps}
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

// next returns the buffer for the vector's successor.
func (s *pingPong) next() mem.Buffer {
	s.now = s.recv
	if s.steps--; s.steps%2 == 1 {
		s.now = s.other
	}
	return s.now
}
