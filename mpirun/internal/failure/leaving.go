package failure

import (
	"slices"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
)

// A Leaving is the ranks that have left, or ended well, and the hosts that ask about them. Their
// ranks ask about an unconnected rank that does not answer, and when a connection breaks. Most
// transports notice by themselves that a rank leaves, so only hosts that ask are notified.
type Leaving struct {
	gone   map[int]bool
	asking map[int][]Asker
	asked  map[int]int64 // time of questions while all was well, by the launcher's clock: see note
	ended  map[int]bool  // ranks whose end has been announced
}

// An Asker is the agent of a host.
type Asker interface{ Send(ctl.Message) }

// Inquire notifies h that a rank has left, at once or later. asked is the time of the question.
// early states that the job continues.
func (l *Leaving) Inquire(h Asker, rank int, asked int64, early bool) {
	if early {
		l.note(rank, asked)
	}
	if l.gone[rank] {
		h.Send(ctl.NewToRanks(&wire.Left{Rank: world.Rank(rank)}))
		return
	}
	if l.asking == nil {
		l.asking = map[int][]Asker{}
	}
	if !slices.Contains(l.asking[rank], h) {
		l.asking[rank] = append(l.asking[rank], h)
	}
}

// note notes the time of a question about a rank. Of questions in quick succession the first
// counts: the asking rank may be the first to fail.
func (l *Leaving) note(rank int, now int64) {
	if l.asked == nil {
		l.asked = map[int]int64{}
	}
	if last, ok := l.asked[rank]; !ok || now-last > int64(MissedTime/2) {
		l.asked[rank] = now
	}
}

// Asked returns the time of the question about a rank, by the launcher's clock, 0 if there is none.
func (l *Leaving) Asked(rank int) int64 { return l.asked[rank] }

// End notes that the end of a rank has been announced.
func (l *Leaving) End(rank int) {
	if l.ended == nil {
		l.ended = map[int]bool{}
	}
	l.ended[rank] = true
}

// Unanswered returns the time of the first question about ranks whose end has not been announced,
// 0 if there is none.
func (l *Leaving) Unanswered(ranks []int) (first int64) {
	for _, r := range ranks {
		if at := l.asked[r]; at != 0 && !l.ended[r] && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// Left notes that a rank has left, and notifies the hosts that asked.
func (l *Leaving) Left(rank int) {
	if l.gone == nil {
		l.gone = map[int]bool{}
	}
	l.gone[rank] = true
	for _, h := range l.asking[rank] {
		h.Send(ctl.NewToRanks(&wire.Left{Rank: world.Rank(rank)}))
	}
	delete(l.asking, rank)
}
