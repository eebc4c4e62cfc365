package shmsync

import "unsafe"

// Steps in which every member sends data to all others.

// Exchange is a step in which every member sends mine, of equal length, to all others. Afterwards
// the payloads of the step are the members' data. first means that this is the collective's first
// step, in which calls are compared.
func (t *Team) Exchange(mine []byte, first bool) (s uint64, err error) {
	s = t.Next(1)
	t.Lay(s, len(mine), false, false)
	h, err := t.Acquire(s, first)
	if err != nil {
		return s, err
	}
	copy(t.Payload(t.me, s, 0, len(mine)), mine)
	t.Publish(h, s)
	if err := t.Assemble(s, first); err != nil {
		return s, err
	}
	for j := range t.parts {
		switch {
		case j == t.me:
		case first:
			err = t.AwaitCall(j, s)
		default:
			err = t.AwaitStep(j, s)
		}
		if err != nil {
			return s, err
		}
	}
	t.AllConsumed(s)
	return s, nil
}

// AgreeLengths is the first step of a collective of which no member knows the lengths of all
// blocks. Each member sends a word for each block that it sends, of its length and all else that
// has to be equal: a word for each member, or a single word for all, or none. It also sends the
// length of its longest block. AgreeLengths returns the longest of all, and an error if the words
// of the blocks that members lo, lo+1 and so on send here differ from expected.
func (t *Team) AgreeLengths(sent, expected []int, longest, lo int) (int, error) {
	const before = 2 // the longest, and the number of words
	s, words := t.Next(1), before+len(t.parts)
	t.Lay(s, 8*words, false, false)
	h, err := t.Acquire(s, true)
	if err != nil {
		return 0, err
	}
	mine := t.words(t.me, s, words)
	mine[0], mine[1] = longest, len(sent)
	copy(mine[before:], sent)
	t.Publish(h, s)
	for j := range t.parts {
		if j == t.me {
			continue
		}
		if err := t.AwaitCall(j, s); err != nil {
			return 0, err
		}
		theirs := t.words(j, s, words)
		longest = max(longest, theirs[0])
		sent := theirs[before]
		if theirs[1] > 1 {
			sent = theirs[before+t.me]
		}
		if i := j - lo; i >= 0 && i < len(expected) && sent != expected[i] {
			return 0, t.port.DisagreeOn(j, expected[i], sent)
		}
	}
	t.AllConsumed(s)
	return longest, nil
}

// words returns a member's payload of step s as n words. Payloads begin at multiples of 8.
func (t *Team) words(member int, s uint64, n int) []int {
	return unsafe.Slice((*int)(unsafe.Pointer(unsafe.SliceData(t.Payload(member, s, 0, 8*n)))), n)
}

// HasLarge reports whether all members have large buffers. The first collective that needs them
// claims them, and exchanges whether all members could. Each touches its pages then, so that no
// later call is slow at first. If calls have not been compared yet, that exchange is the
// collective's first step.
func (t *Team) HasLarge(compared *bool) (bool, error) {
	if !t.asked {
		t.asked = true
		mine := [1]byte{1}
		if t.claim() != nil {
			mine[0] = 0
		}
		for off := uint64(0); off < t.l3.size && mine[0] == 1; off += pageSize {
			*(*byte)(unsafe.Add(t.parts[t.me].large, off)) = 0
		}
		s, err := t.Exchange(mine[:], !*compared)
		if err != nil {
			return false, err
		}
		*compared = true
		for j := range t.parts {
			if t.Payload(j, s, 0, 1)[0] == 0 {
				t.l3.size = 0
			}
		}
	}
	return t.l3.size > 0, nil
}
