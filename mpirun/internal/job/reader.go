package job

import "time"

// How long the reader of a job's output, such as a pager, may read nothing before the rest is
// dropped, once the job is ending. A user who ends the job by a signal or a time limit wants it to
// end. A job that ends well waits for its reader, until a signal or the time limit.
const (
	readerTime         = 10 * time.Second
	deadlineReaderTime = time.Second
	readerLook         = 100 * time.Millisecond // how often that is looked at
)

// readerTime returns that time.
func (s *shutdown) readerTime() time.Duration {
	if s.hasDeadline {
		return deadlineReaderTime
	}
	return readerTime
}

// giveUpReader drops the output that the reader does not read. Then the agents get their credit,
// and can end.
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
