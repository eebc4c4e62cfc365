package agent

import "gompi/mpirun/internal/preload"

// A fetching tracks the programs and files that must arrive before the ranks can start.
type fetching struct {
	waiting bool
	intake  preload.Intake
	input   [][]byte // that has come for ranks not yet started
}

// fetch requests the next item that is missing here, and reports whether there was one.
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
