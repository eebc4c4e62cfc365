package job

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/report"
)

// statistics are the figures for -stats and -trace. All runs of a job share them: counters add
// up, and are written after the last run.
type statistics struct {
	*report.Collector          // nil without -stats and -trace
	stats             *os.File // nil: to stderr
	trace             *os.File // nil for none
}

// openStats opens the output files before the job is started, so that invalid names are reported
// then.
func (j *Job) openStats() (err error) {
	want := &j.spec.Stats
	if !want.On() || j.statistics.Collector != nil {
		return nil
	}
	if want.File != "" {
		j.statistics.stats, err = os.Create(want.File)
	}
	if err == nil && want.Trace != "" {
		j.statistics.trace, err = os.Create(want.Trace)
	}
	if err != nil {
		return fmt.Errorf("-stats and -trace: %w", err)
	}
	program := &j.spec.Programs[0]
	j.statistics.Collector = report.New(program.Name(), len(j.plan.Ranks))
	j.statistics.Hint = uncounted(program.Argv)
	return nil
}

// uncounted returns the likely reason why a program has no figures.
func uncounted(argv []string) string {
	hint := "programs of MPI are counted on gompi's library: -mpi-lib gompi"
	if cmdline.IsPython(argv) {
		return "torch's gloo and nccl are not counted: -torch-backend gompi has gompi do what they do; " + hint
	}
	return hint
}

// gotFigures takes a rank's figures.
func (j *Job) gotFigures(h *host, m *ctl.Figures) {
	if j.statistics.Collector == nil {
		return
	}
	m.Begun, m.Left = h.pulse.clock.Ours(m.Begun), h.pulse.clock.Ours(m.Left)
	m.Rank = j.recover.original(m.Rank)
	for i := range m.Peers {
		m.Peers[i].Rank = j.recover.original(m.Peers[i].Rank)
	}
	j.statistics.Add(h.name, &m.Figures, m.Copies)
}

// gotEvents takes some calls of the rank with the latest figures.
func (j *Job) gotEvents(h *host, m *ctl.Events) {
	if j.statistics.Collector == nil {
		return
	}
	for i := range m.Events {
		e := &m.Events[i]
		e.Begin = h.pulse.clock.Ours(e.Begin)
		if e.Peer >= 0 {
			e.Peer = j.recover.original(e.Peer)
		}
	}
	j.statistics.AddEvents(j.recover.original(m.Rank), m.Events)
}

// writeStats writes the requested files after the last run.
func (j *Job) writeStats() error {
	s := &j.statistics
	if s.Collector == nil || j.attempt.next != nil {
		return nil
	}
	var err error
	if j.spec.Stats.Table {
		sum := s.Summary()
		switch {
		case s.stats == nil && len(sum.PerRank) == 0 && j.end.cause != nil: // it failed before a rank could use gompi
		case s.stats == nil:
			var b strings.Builder
			err = sum.Write(&b, "")
			j.out.Log(strings.TrimRight(b.String(), "\n"))
		default:
			err = errors.Join(sum.Write(s.stats, j.spec.Stats.File), s.stats.Close())
		}
	}
	if s.trace != nil {
		err = errors.Join(err, s.WriteTrace(s.trace), s.trace.Close())
	}
	return err
}
