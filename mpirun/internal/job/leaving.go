package job

import (
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/failure"
)

// leaving is the ranks that have left, or ended well, and the hosts that ask about them. Their
// ranks ask about an unconnected rank that does not answer, and when a connection breaks. Most
// transports notice by themselves that a rank leaves, so only hosts that ask are notified.
type leaving struct {
	gone   map[int]bool
	asking map[int][]*host
	asked  map[int]int64 // time of questions while all was well, by the launcher's clock: see note
	ended  map[int]bool  // ranks whose end has been announced
}

// inquire notifies h that a rank has left, at once or later. asked is the time of the question, by
// h's clock. early states that the job continues.
func (l *leaving) inquire(h *host, rank int, asked int64, early bool) {
	if early {
		l.note(rank, h.pulse.clock.Ours(asked))
	}
	if l.gone[rank] {
		h.Send(ctl.NewToRanks(&wire.Left{Rank: world.Rank(rank)}))
		return
	}
	if l.asking == nil {
		l.asking = map[int][]*host{}
	}
	if !slices.Contains(l.asking[rank], h) {
		l.asking[rank] = append(l.asking[rank], h)
	}
}

// note notes the time of a question about a rank. Of questions in quick succession the first
// counts: the asking rank may be the first to fail.
func (l *leaving) note(rank int, now int64) {
	if l.asked == nil {
		l.asked = map[int]int64{}
	}
	if last, ok := l.asked[rank]; !ok || now-last > int64(failure.MissedTime/2) {
		l.asked[rank] = now
	}
}

// end notes that the end of a rank has been announced.
func (l *leaving) end(rank int) {
	if l.ended == nil {
		l.ended = map[int]bool{}
	}
	l.ended[rank] = true
}

// unanswered returns the time of the first question about ranks whose end has not been announced,
// 0 if there is none.
func (l *leaving) unanswered(ranks []int) (first int64) {
	for _, r := range ranks {
		if at := l.asked[r]; at != 0 && !l.ended[r] && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// left notes that a rank has left, and notifies the hosts that asked.
func (l *leaving) left(rank int) {
	if l.gone == nil {
		l.gone = map[int]bool{}
	}
	l.gone[rank] = true
	for _, h := range l.asking[rank] {
		h.Send(ctl.NewToRanks(&wire.Left{Rank: world.Rank(rank)}))
	}
	delete(l.asking, rank)
}
