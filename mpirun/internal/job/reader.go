package job

import "time"

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
