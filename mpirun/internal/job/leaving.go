package job

import "gompi/mpirun/internal/ctl"

// leaving is which ranks have left, or ended well, and which hosts want to know it of whom. Their
// ranks ask when a rank does not answer that they have no connection to: most transports notice for
// themselves that a rank leaves, so not all hosts are told of all ranks. They ask, too, when the
// connection to a rank breaks.
type leaving struct {
	gone   map[int]bool
	asking map[int][]*host
	asked  map[int]int64 // when ranks were last asked about before the job began to end
}

// inquire tells h that a rank has left, now or when it has. early says that the job goes on.
func (l *leaving) inquire(h *host, rank int, early bool) {
	if early {
		if l.asked == nil {
			l.asked = map[int]int64{}
		}
		l.asked[rank] = clock()
	}
	if l.gone[rank] {
		h.Send(&ctl.Left{Rank: rank})
		return
	}
	if l.asking == nil {
		l.asking = map[int][]*host{}
	}
	l.asking[rank] = append(l.asking[rank], h)
}

// left notes that a rank has left, and tells those who asked.
func (l *leaving) left(rank int) {
	if l.gone == nil {
		l.gone = map[int]bool{}
	}
	l.gone[rank] = true
	for _, h := range l.asking[rank] {
		h.Send(&ctl.Left{Rank: rank})
	}
	delete(l.asking, rank)
}
