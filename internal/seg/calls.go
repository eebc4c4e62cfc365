package seg

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/mem"
	"gompi/internal/world"
)

// A Recording is a Call as another process reads it.
type Recording struct {
	Number uint64 // counts the rank's calls from 1
	Call
	Done bool
}

// Calls returns the calls in a local rank's flight recorder, oldest first, without calls that are
// being written at that moment. Calls may be called from any process at any time.
func (s *Segment) Calls(local world.LocalRank) []Recording {
	var out []Recording
	ring := s.calls[local*Recorded:][:Recorded]
	for i := range ring {
		if r, ok := ring[i].read(); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Recording) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Running returns the newest unfinished call of a rank, nil if none, and its number for Site. For a
// rank in Wait on a nonblocking collective, c is the collective and at the Wait's number.
func Running(recorded []Recording) (c *Recording, at uint64) {
	for i := range slices.Backward(recorded) {
		switch r := &recorded[i]; {
		case r.Done:
		case c == nil:
			c, at = r, r.Number
		case c.Kind == calls.Wait && r.Kind.Collective():
			return r, at
		}
	}
	return c, at
}

// Text describes the call, with its number if it is a collective.
func (r Recording) Text() string {
	if r.Kind.Collective() && r.Seq > 0 {
		return fmt.Sprintf("%v number %d", r, r.Seq)
	}
	return r.String()
}

// Site returns the place in the program where a local rank waits in the call with the given number;
// "" if the place is not known.
func (s *Segment) Site(local world.LocalRank, number uint64) string {
	if site := s.lines[local].site.read(number); site != "" {
		return site
	}
	return s.lines[local].site.read(uint64(AnyCall))
}

// Name returns the name of a communicator: comm is its id, and a local rank of an MPI program was
// last found in a long wait on it.
func (s *Segment) Name(local world.LocalRank, comm uint64) CommName {
	name, isPersistent := strings.CutPrefix(s.lines[local].name.read(comm), persistentMark)
	return CommName{name, isPersistent}
}

// CannotLeave returns why a local rank has not left the job, "" if the rank has given no reason.
func (s *Segment) CannotLeave(local world.LocalRank) string {
	l := &s.lines[local]
	return l.site.read(ofLeaving) + l.name.read(ofLeaving)
}

// read returns the text of the call or communicator with a number, "" if n is the note of another.
func (n *note) read(number uint64) string {
	for range tries {
		before := n.written.Load()
		if before%2 == 1 {
			continue
		}
		of := n.of.Load()
		var text [noteWords * 8]byte
		for i := range n.text {
			binary.NativeEndian.PutUint64(text[i*8:], n.text[i].Load())
		}
		if n.written.Load() != before {
			continue
		}
		if of != number {
			return ""
		}
		return string(bytes.TrimRight(text[:], "\x00"))
	}
	return ""
}

// tries bounds the attempts to read a record that changes all the time. Its writer reuses a record
// only after 64 calls, so even two attempts are rare.
const tries = 8

func (rec *record) read() (r Recording, ok bool) {
	for range tries {
		before := atomic.LoadUint64(&rec.stamp)
		if before == 0 || before&3 == busy {
			continue
		}
		what := atomic.LoadUint64(&rec.what)
		r = Recording{
			Number: before >> 2,
			Call: Call{
				Comm:  atomic.LoadUint64(&rec.comm),
				Kind:  calls.Kind(what),
				Of:    calls.Kind(what >> 24),
				Type:  mem.Type(what >> 8),
				Op:    mem.Op(what >> 16),
				Peer:  peer(what),
				Count: int64(atomic.LoadUint64(&rec.count)),
				Bytes: int64(atomic.LoadUint64(&rec.bytes)),
				Start: int64(atomic.LoadUint64(&rec.start)),
				Seq:   int64(atomic.LoadUint64(&rec.seq)),
			},
		}
		if r.Type == mem.Opaque && r.Kind.Collective() {
			n, size := mem.UnpackElements(uint64(r.Count))
			r.Count, r.Size = int64(n), int64(size)
		}
		if r.Kind == calls.Send {
			r.Seq, r.Held = int64(uint32(r.Seq)), int64(uint64(r.Seq)>>32)
		}
		after := atomic.LoadUint64(&rec.stamp)
		if after>>2 == before>>2 && after&3 != busy {
			r.Done = after&3 == done
			return r, true
		}
	}
	return Recording{}, false
}

// peer returns the root or peer in the word what of a record, -1 if the call has none: the bits may
// then mean something else.
func peer(what uint64) int {
	if k := calls.Kind(what); k.Collective() && !k.Rooted() {
		return -1
	}
	return int(int32(what >> 32))
}

// String describes c in one line: "allreduce(1024 float32, sum)".
func (c Call) String() string {
	s := c.Kind.String() + "("
	switch {
	case c.Type == mem.NoType:
	case c.Size > 0:
		s += fmt.Sprintf("%d elements of %d bytes", c.Count, c.Size)
	default:
		s += fmt.Sprintf("%d %v", c.Count, c.Type)
	}
	if c.Op != mem.NoOp {
		s += ", " + c.Op.String()
	}
	switch {
	case c.Peer < 0:
	case c.Kind.Collective():
		s += fmt.Sprintf(", root %d", c.Peer)
	default:
		s += fmt.Sprintf(", rank %d", c.Peer)
	}
	if c.Kind.Message() && c.Seq >= 0 {
		s += fmt.Sprintf(", tag %d", c.Seq)
	}
	if c.Held > 0 {
		s += fmt.Sprintf("; rank %d holds %d messages of this rank that it has not received", c.Peer, c.Held)
	}
	return s + ")"
}
