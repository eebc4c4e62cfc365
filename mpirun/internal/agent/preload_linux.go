package agent

import "gompi/mpirun/internal/preload"

// A fetching is what keeps ranks from being started: programs and files that are not
// here yet.
type fetching struct {
	waiting bool
	intake  preload.Intake
	input   [][]byte // that has come for ranks not yet started
}

// fetch sees to it that the next item that is missing here is asked for, and
// reports whether one was.
func (a *agent) fetch() (bool, error) {
	want, err := a.fetching.intake.Next()
	if a.fetching.waiting = want != nil; want != nil {
		a.report(want)
	}
	return a.fetching.waiting, err
}

// take takes a piece of what is being fetched, and starts the ranks
// when nothing is missing any more.
func (a *agent) take(data []byte) {
	if !a.fetching.waiting || a.end.ordered {
		return
	}
	want, err := a.fetching.intake.Take(data)
	if want != nil {
		a.report(want)
		return
	}
	a.fetching.waiting = false
	a.begin(err)
	if a.fetching.waiting {
		return
	}
	for _, data := range a.fetching.input {
		a.input(data)
	}
	a.fetching.input = nil
}
