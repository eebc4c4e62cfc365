package job

import "time"

// How long whoever reads the output of a job that is ending may take nothing of it
// before the rest is dropped: a pager may be looked at, but then the ranks are gone
// already. Who ends the job by a signal or a time limit wants it to end. A job that
// ends well waits for its reader, until a signal or the time limit.
const (
	readerTime  = 10 * time.Second
	hurriedTime = time.Second
	readerLook  = 100 * time.Millisecond // how often that is looked at
)

// readerTime is how long that may be now.
func (s *shutdown) readerTime() time.Duration {
	if s.hurried {
		return hurriedTime
	}
	return readerTime
}

// giveUpReader drops the output that nobody takes. The agents get their credit
// then, and can come to their ends.
func (j *Job) giveUpReader() { j.out.GiveUp(j.end.readerTime()) }

// flush waits until all output is written or given up.
func (j *Job) flush() {
	for flushed := j.out.Flush(); ; {
		select {
		case <-flushed:
			return
		case s := <-j.signals:
			j.signalled(s)
		case <-j.timer:
			j.timeUp("")
		case <-j.end.looks:
			j.giveUpReader()
		}
	}
}
