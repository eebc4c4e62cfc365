package layout

// Order reports whether no run of l begins before the start of the previous run, and whether none
// begins before the end of the previous run. Runs are taken in the order of the packed bytes. The
// time depends on the spans and parts listed in l, not on counts.
func (l *Layout) Order() (ascending, disjoint bool) {
	if l.Size() == 0 {
		return true, true
	}
	s := l.sequence()
	return !s.falls, !s.falls && !s.overlaps
}

// A sequence is runs, of which the first begins at first, and the last is from last to end.
type sequence struct {
	first, last, end int
	falls, overlaps  bool // the negated results of Order
}

// then is s followed by t.
func (s sequence) then(t sequence) sequence {
	return sequence{s.first, t.last, t.end,
		s.falls || t.falls || t.first < s.last, s.overlaps || t.overlaps || t.first < s.end}
}

// thenOrOnly is t if t is number 0, else s followed by t.
func (s sequence) thenOrOnly(t sequence, number int) sequence {
	if number == 0 {
		return t
	}
	return s.then(t)
}

// by is s, off bytes further on.
func (s sequence) by(off int) sequence {
	s.first, s.last, s.end = s.first+off, s.last+off, s.end+off
	return s
}

// sequence returns the sequence of l, which has data.
func (l *Layout) sequence() sequence {
	turn := sequence{end: l.each} // a run
	for i, s := range l.spans {
		turn = turn.thenOrOnly(sequence{first: s.off, last: s.off, end: s.off + s.n}, i)
	}
	for i := range l.parts {
		turn = turn.thenOrOnly(l.parts[i].sequence(), i)
	}
	all := turn
	if l.count > 1 { // all turns follow each other as the first two do
		all = turn.then(turn.by(l.stride))
		all.last, all.end = turn.last+(l.count-1)*l.stride, turn.end+(l.count-1)*l.stride
	}
	return all.by(l.off)
}
