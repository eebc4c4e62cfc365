package tcp

import "gompi/transport"

// Small frames to one peer that follow one another without a Poll in between, as the sends of a
// window do, leave in one system call, which costs ten times an append of a frame. The first frame
// leaves at once, so that a single message never waits. The others are gathered and leave at the
// next Poll. Until then Arm returns false and Pending true, so that another goroutine polls if the
// caller does not. Only Eager frames are gathered: in a collective the other side waits for each
// (allreduce of 8 bytes: 14 us with all kinds gathered, 12.5 with these).

const (
	// burstLimit is the largest payload of a gathered frame.
	burstLimit = 4 << 10
	// burstBytes and burstFrames bound the frames gathered for a peer: when they are reached, the
	// frames leave without a Poll, so that the peer can begin to work.
	burstBytes  = 64 << 10
	burstFrames = 32
)

// joins reports whether a frame with n bytes of payload is to be gathered.
func (p *peer) joins(k transport.Kind, n int) bool {
	return p.sentLately && k == transport.Eager && n <= burstLimit && p.conn != nil && (p.gathering || p.out.Empty())
}

// noteSent notes that a frame has left for p since the last Poll.
func (t *Transport) noteSent(p *peer, k transport.Kind) {
	if k == transport.Eager && !p.sentLately {
		p.sentLately = true
		t.sentLately = append(t.sentLately, p)
	}
}

// gathered notes that a frame is queued for p to leave with others. If many, they leave at once.
func (t *Transport) gathered(p *peer) {
	if !p.gathering {
		p.gathering = true
		t.gathering++
	}
	many := p.out.copied >= burstBytes || p.out.Len() >= burstFrames
	if many {
		t.flushBurst(p)
	}
}

// flushBursts sends all gathered frames. flushBursts returns the number of frames that left.
func (t *Transport) flushBursts() int {
	n := 0
	for _, p := range t.sentLately {
		p.sentLately = false
		if p.gathering {
			n += t.flushBurst(p)
		}
	}
	t.sentLately = t.sentLately[:0]
	return n
}

// flushBurst sends the frames gathered for p.
func (t *Transport) flushBurst(p *peer) int {
	p.gathering = false
	t.gathering--
	if p.conn == nil {
		return 0
	}
	return t.flush(p)
}
