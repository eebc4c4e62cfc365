package job

import (
	"path/filepath"
	"strconv"
	"time"

	"gompi/mpirun/internal/ctl"
)

// setFiles sets the files and patterns of the output, and makes the folders of the ranks' files.
func (j *Job) setFiles() error {
	j.out.Ranks = j.plan.Labels()
	j.out.Files.Patterns = map[ctl.Stream]string{ctl.Stdout: j.spec.Output.Outfile, ctl.Stderr: j.spec.Output.Errfile}
	if j.spec.Report.DoNotLaunch {
		return nil
	}
	if j.spec.Output.Dir != "" {
		dir := filepath.Join(j.spec.Output.Dir, strconv.Itoa(j.attempt.runs+1)) // as the first job of Open MPI's mpirun
		if j.spec.Output.NoJobID {
			dir = j.spec.Output.Dir
		}
		j.verbosef("output is in %s", dir)
		j.out.Files.Dir, j.out.Files.Only, j.out.Files.Merged = dir, j.spec.Output.NoCopy, j.spec.Output.Merge
	}
	_, err := during(j, "making the folders of output", func() (any, error) { return nil, j.out.MakeFolders() })
	return err
}

// How long the reader of an ending job's output, such as a pager, may read nothing before the
// rest is dropped. A job ended by a signal or a time limit has to end soon. A job that ends well
// waits for its reader, until a signal or the time limit.
const (
	readerTime         = 10 * time.Second
	deadlineReaderTime = time.Second
	readerLook         = 100 * time.Millisecond // period of the check
)

// readerTime returns the time that applies.
func (s *shutdown) readerTime() time.Duration {
	if s.hasDeadline {
		return deadlineReaderTime
	}
	return readerTime
}

// giveUpReader drops output that its reader does not read. The agents then get their credit, and
// can end.
func (j *Job) giveUpReader() { j.out.GiveUp(int(j.end.readerTime() / readerLook)) }

// flush waits until all output is written or given up.
func (j *Job) flush() {
	for flushed := j.out.Flush(); ; {
		select {
		case <-flushed:
			return
		case s := <-j.signals:
			j.signalled(s)
		case q := <-j.system.Questions:
			j.askedFor(q)
		case <-j.timer:
			j.timeUp("")
		case <-j.end.looks:
			j.giveUpReader()
		}
	}
}
