package job

import (
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
)

// inputAhead is the most unread input that an agent may hold.
const inputAhead = 128 << 10

// An Input is the result of a read of standard input: data, an error, or neither at the end.
type Input struct {
	Data []byte
	Err  error
}

// An input forwards standard input to its ranks, no faster than they read.
type input struct {
	ch       <-chan Input // closed at the end of input
	targets  []*host
	inFlight map[*host]int // bytes sent and not consumed
	ended    bool
}

// inherits reports whether one rank of h gets standard input itself. The launcher then reads none
// of it, so that the rank's unread input is left to others, such as the shell's loop over a list.
func (j *Job) inherits(h *host) bool {
	return j.system.Inherited && h.Here() && !j.attempt.takes.All && slices.ContainsFunc(h.ranks, j.attempt.takes.Takes)
}

// chooseInput decides which ranks get standard input: the user's choice, from its start. If an
// earlier run may have read some and rewinding is impossible, no rank does.
func (j *Job) chooseInput() {
	a := &j.attempt
	a.takes = j.spec.Stdin
	switch {
	case !a.tookInput:
	case j.system.Rewind():
		a.tookInput, j.stdin = false, nil
	default:
		a.takes = cmdline.Stdin{Rank: -1}
		if !a.reportedInput {
			a.reportedInput = true
			j.notef("standard input cannot be read from its start again: ranks get none after the first run")
		}
	}
}

// newInput returns the input for its ranks, unless they inherit standard input. Nothing is read
// yet.
func (j *Job) newInput(hosts []*host) *input {
	in := &input{inFlight: map[*host]int{}}
	for _, h := range hosts {
		if j.inherits(h) {
			continue
		}
		for _, r := range h.ranks {
			if j.attempt.takes.Takes(r) {
				in.targets = append(in.targets, h)
				break
			}
		}
	}
	in.ended = len(in.targets) == 0
	return in
}

// wireStdin encodes stdin for agents.
func wireStdin(stdin cmdline.Stdin) int {
	switch {
	case stdin.All:
		return ctl.StdinAll
	case stdin.Rank < 0:
		return ctl.StdinNone
	}
	return stdin.Rank
}

// chunks returns the channel of input, nil while an agent holds enough.
func (in *input) chunks() <-chan Input {
	if in.ended {
		return nil
	}
	for _, n := range in.inFlight {
		if n >= inputAhead {
			return nil
		}
	}
	return in.ch
}

// pass forwards data. Empty data is the end of input.
func (in *input) pass(data []byte) {
	in.ended = len(data) == 0
	for _, h := range in.targets {
		in.inFlight[h] += len(data)
		h.Send(&ctl.Input{Data: data})
	}
}

// passInput forwards a read's result. After an error the ranks see the end of input, and the job
// fails.
func (j *Job) passInput(in Input) {
	if in.Err != nil {
		j.end.unread = in.Err
		j.notef("standard input ends early: %v", in.Err)
	}
	if in.Err != nil || len(in.Data) > 0 {
		j.attempt.tookInput = true
	}
	j.input.pass(in.Data)
}

// consumed counts that the ranks of h have read n bytes.
func (in *input) consumed(h *host, n int) { in.inFlight[h] -= n }

// gone forgets a host whose ranks have ended, which reports no more consumption. Without any host
// left, input is no longer read.
func (in *input) gone(h *host) {
	delete(in.inFlight, h)
	in.targets = slices.DeleteFunc(in.targets, func(t *host) bool { return t == h })
	in.ended = in.ended || len(in.targets) == 0
}

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
