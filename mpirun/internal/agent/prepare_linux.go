package agent

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/preload"
	"gompi/mpirun/internal/program"
)

// A preparation is what must be done before the ranks can start: finding their surroundings and
// programs, and fetching what must arrive. All of it looks at file systems, which may be slow, so
// it runs aside.
type preparation struct {
	underWay bool
	since    time.Time // when its step began; zero if there is none, or the user knows how long it takes
	intake   preload.Intake
	input    [][]byte // that has come for ranks not yet started
	// These are set aside, and not read by the loop before the ranks start:
	vars     []string           // that ranks get, before those of their programs
	dir      string             // where ranks work whose program does not say; "" for here
	warnings []string           // for the user
	programs []*program.Program // of the launch; nil for those of no rank here
}

// prepare continues with the preparation: by a step that may find that something is to be fetched,
// and if it does not, by the steps after it. When nothing is left the ranks are started.
func (a *agent) prepare(step func() (*ctl.Want, error)) {
	a.preparation.underWay, a.preparation.since = true, time.Now()
	a.doAside(func() func() {
		rank := a.launch.Ranks[0].Rank
		want, err := step()
		if want == nil && err == nil {
			want, err = a.preparation.intake.Next()
		}
		if want == nil && err == nil {
			rank, err = a.lookUpAll()
		}
		return func() { a.prepared(want, rank, err) }
	})
}

// stepTime is how long a step may take before the user is told.
const stepTime = 5 * time.Second

// slowAt returns when the step under way will have taken long, zero if there is none.
func (p *preparation) slowAt() time.Time {
	if p.since.IsZero() {
		return p.since
	}
	return p.since.Add(stepTime)
}

// reportSlow reports a step that takes long, once.
func (a *agent) reportSlow(now time.Time) {
	if t := a.preparation.slowAt(); t.IsZero() || now.Before(t) {
		return
	}
	a.preparation.since = time.Time{}
	a.note("ranks are not started yet: for %v programs, folders and files have been looked at, as those of %q. Are they large, or does a file system not answer?",
		stepTime, a.launch.Programs[a.launch.Ranks[0].Program].Argv[0])
}

// files returns the programs of this host's ranks, and this one.
func (p *preparation) files() []string {
	var files []string
	if own, err := os.Executable(); err == nil {
		files = append(files, own)
	}
	for _, prog := range p.programs {
		if prog != nil {
			files = append(files, prog.Path)
		}
	}
	return files
}

func (p *preparation) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// prepared asks for what is wanted, or else starts the ranks. err, if not nil, is why a rank cannot
// be started.
func (a *agent) prepared(want *ctl.Want, rank int, err error) {
	a.preparation.since = time.Time{}
	if a.end.ordered {
		return
	}
	if want != nil && err == nil {
		a.report(want)
		return
	}
	for _, w := range a.preparation.warnings {
		a.note("%s", w)
	}
	a.preparation.underWay = false
	a.begin(rank, err)
	for _, data := range a.preparation.input {
		a.input(data)
	}
	a.preparation.input = nil
}

// take takes a piece of what is being fetched.
func (a *agent) take(data []byte) {
	if !a.preparation.underWay || a.end.ordered {
		return
	}
	data = bytes.Clone(data)
	a.prepare(func() (*ctl.Want, error) { return a.preparation.intake.Take(data) })
}
