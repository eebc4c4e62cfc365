package agent

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/seg"
	"gompi/internal/world"
	"gompi/mpirun/internal/ctl"
)

// A written is an agent and a pipe to it that a rank writes to.
type written struct {
	t  *testing.T
	a  *agent
	p  *process
	s  *stream
	to int // the rank's end

	ready bool          // the rank is
	used  time.Duration // what it has used of a processor
}

// newWritten makes the pipe of one stream of a rank.
func newWritten(t *testing.T, kind ctl.Stream) *written {
	t.Helper()
	a := &agent{launch: &ctl.Launch{}, local: map[int]int{}, window: 1 << 20}
	if err := a.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(a.fd) })
	w := &written{t: t, a: a, p: a.add(ctl.Rank{})}
	a.ready = func(...int) (bool, time.Duration) { return w.ready, w.used }
	w.s = map[ctl.Stream]*stream{ctl.Stdout: &w.p.stdout, ctl.Stderr: &w.p.stderr}[kind]
	pipe, err := newPipe(0)
	if err != nil {
		t.Fatal(err)
	}
	w.s.fd, w.to = pipe[0], pipe[1]
	t.Cleanup(func() { unix.Close(w.to) })
	if err := a.watch(w.s.fd, stdout, 0, unix.EPOLLIN); err != nil {
		t.Fatal(err)
	}
	return w
}

// write writes as the rank does.
func (w *written) write(text string) {
	w.t.Helper()
	if n, err := unix.Write(w.to, []byte(text)); err != nil || n != len(text) {
		w.t.Fatalf("%d bytes written of %q, %v", n, text, err)
	}
}

// reported returns what has been reported to the launcher.
func (w *written) reported() (all []ctl.Message) {
	w.t.Helper()
	r := ctl.NewReader(bytes.NewReader(append([]byte(ctl.Magic), w.a.reports...)))
	for m, err := r.Next(); err == nil; m, err = r.Next() {
		all = append(all, m)
	}
	w.a.reports = nil
	return all
}

// sends checks which pieces of output have been sent to the launcher.
func (w *written) sends(when string, want ...string) {
	w.t.Helper()
	var got []string
	for _, m := range w.reported() {
		if m, ok := m.(*ctl.Output); ok {
			got = append(got, string(m.Data))
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s %q is sent, want %q", when, got, want)
	}
}

// A line that grows is shown when its first byte has waited for long enough.
func TestALineThatGrowsIsShown(t *testing.T) {
	w := newWritten(t, ctl.Stdout)
	w.write("10% ")
	w.a.read(w.s)
	due := w.s.due
	if due.After(time.Now().Add(linePatience)) {
		t.Errorf("it is due %v from now", time.Until(due))
	}
	w.write("20% ")
	w.a.read(w.s)
	w.a.sendPartials(due.Add(-1))
	w.sends("before it is due")
	w.a.sendPartials(due)
	w.sends("when it is due", "10% 20% ")
	w.write("30% ")
	w.a.read(w.s)
	w.a.sendPartials(w.s.due)
	w.sends("when its next piece is due", "30% ")
}

// The end of a line that is in the rank's pipe, or that the rank cannot write, is waited for.
func TestNoLineIsTornWhileItsEndIsNotRead(t *testing.T) {
	t.Run("the agent is late", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("one\ntw")
		w.a.read(w.s)
		w.write("o\n")
		w.a.sendPartials(w.s.due)
		w.sends("late", "one\n", "two\n")
	})
	t.Run("no credit", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("one\ntw")
		w.a.window = 1
		w.a.read(w.s)
		w.sends("with credit", "one\n")
		due := w.s.due
		w.write("o")
		w.a.sendPartials(due)
		w.a.sendPartials(due.Add(time.Hour))
		w.sends("without credit")
		w.a.credit(1 << 20)
		if w.s.due.IsZero() || w.s.due.Equal(due) {
			t.Errorf("with credit again the line is due at %v, was at %v; want a new time", w.s.due, due)
		}
		w.write("\n")
		w.a.read(w.s)
		w.sends("with credit again", "two\n")
	})
	t.Run("the rank ends without credit", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.a.read(w.s)
		w.write("o\n")
		w.a.window = 0
		w.exits(0)
		w.sends("without credit")
		w.a.credit(1 << 20)
		w.a.read(w.s)
		w.sends("with credit", "two\n")
	})
	t.Run("the ranks are stopped", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.a.read(w.s)
		due := w.s.due
		w.a.forwardSignal(unix.SIGTSTP)
		w.a.sendPartials(due)
		w.sends("while they are stopped")
		w.a.forwardSignal(unix.SIGCONT)
		w.a.sendPartials(due)
		w.sends("as soon as they continue")
		w.a.sendPartials(w.s.due)
		w.sends("when it is due again", "tw")
	})
	t.Run("the agent was stopped", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.a.read(w.s)
		due := w.s.due
		w.a.sendPartials(due.Add(time.Hour))
		w.sends("as soon as it continues")
		w.a.sendPartials(w.s.due)
		w.sends("when it is due again", "tw")
	})
}

// A line is not torn because its rank gets no processor, and a prompt is shown at once.
func TestALineWaitsUntilItsRankHasHadItsTurn(t *testing.T) {
	begin := func(t *testing.T) *written {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.a.read(w.s)
		w.ready = true
		w.a.sendPartials(w.s.due)
		w.sends("when the rank is ready to run")
		return w
	}
	t.Run("its end comes", func(t *testing.T) {
		w := begin(t)
		w.write("o\n")
		w.a.sendPartials(w.s.due)
		w.sends("when the rank has run", "two\n")
	})
	t.Run("the rank computes", func(t *testing.T) {
		w := begin(t)
		w.used += lineTurn
		w.a.sendPartials(w.s.due)
		w.sends("when the rank has had its turn", "tw")
	})
	t.Run("the rank waits", func(t *testing.T) {
		w := begin(t)
		w.ready = false
		w.a.sendPartials(w.s.due)
		w.sends("when the rank waits", "tw")
	})
	t.Run("the rank gets no processor for long", func(t *testing.T) {
		w := begin(t)
		for begun := w.s.turn.begun; w.s.due.Sub(begun) < turnTime; {
			w.a.sendPartials(w.s.due)
		}
		w.sends("while it is waited for")
		w.a.sendPartials(w.s.due)
		w.sends("after that", "tw")
	})
	t.Run("the next line", func(t *testing.T) {
		w := begin(t)
		w.used += lineTurn
		w.write("o\nthr")
		w.a.sendPartials(w.s.due)
		w.sends("when the rank has run", "two\n")
		w.a.sendPartials(w.s.due)
		w.sends("when the rank is to have another turn")
	})
}

// exits ends the rank with a status.
func (w *written) exits(status int) {
	w.t.Helper()
	s, err := seg.New([]world.Rank{0})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.a.releases.Wait()
		s.Close()
	})
	w.a.segment, w.a.alive = s, 1
	w.a.exited(w.p, unix.WaitStatus(status<<8), &unix.Rusage{})
}

// The report of a failure shows what the rank said last, even if there is no credit for output.
func TestTheTailOfAFailedRankNeedsNoCredit(t *testing.T) {
	w := newWritten(t, ctl.Stderr)
	w.write("no disk\n")
	w.a.window = 0
	w.exits(3)
	all := w.reported()
	if m, ok := all[len(all)-1].(*ctl.Exited); !ok || string(m.Tail) != "no disk\n" {
		t.Errorf("reported %+v, want the rank's end with its last words", all)
	}
}

// What ranks left running is not killed because the launcher took no output for long.
func TestTimeWithoutCreditIsNotTimeToWrite(t *testing.T) {
	w := newWritten(t, ctl.Stdout)
	now := time.Now()
	w.write("x")
	w.a.window = 0
	w.a.read(w.s)
	w.a.end.linger, w.a.haltedAt = linger{open: true, until: now.Add(time.Millisecond)}, now.Add(-time.Minute)
	w.a.credit(1 << 20)
	if left := w.a.end.linger.until.Sub(now); left < lingering {
		t.Errorf("%v are left for it to write, want %v", left, lingering)
	}
}

// What ranks left running is not killed because it got no processor.
func TestWhatIsLeftRunningHasItsTurn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		open  bool
		least time.Duration // that it is waited for, whatever it does
		turn  time.Duration // of a processor, that it is to have
		most  time.Duration // until it is not waited for any more
	}{
		{"output open", true, lingering, lingerTurn, mostLingering},
		{"output closed", false, dyingTime, lineTurn, turnTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			var w *written
			lingers := func(when string, after time.Duration, want bool) {
				t.Helper()
				if got := w.a.lingers(begin.Add(after), tt.open); got != want {
					t.Errorf("%s, after %v, it is waited for: %v, want %v", when, after, got, want)
				}
			}
			ended := func() {
				w = newWritten(t, ctl.Stdout)
				lingers("when the ranks have ended", 0, true)
				lingers("while it has its time", tt.least-1, true)
			}
			ended()
			lingers("when it sleeps", tt.least, false)
			ended()
			w.ready, w.used = true, tt.turn-1
			lingers("when it is ready to run", tt.least, true)
			w.used = tt.turn
			lingers("when it has had its turn", tt.least+turnLook, false)
			ended()
			w.ready = true
			lingers("when it is ready to run", tt.least, true)
			lingers("when it is ready to run", tt.most-1, true)
			lingers("when it has been so for too long", tt.most+turnLook, false)
			ended()
			w.write("x")
			lingers("when it has written", tt.least, true)
		})
	}
	w, begin := newWritten(t, ctl.Stdout), time.Now()
	w.a.lingers(begin, true)
	w.used, w.ready = lingerTurn, true
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{lingering, true}, {lingering + dyingTime, true}, {lingering + turnTime, false}} {
		if got := w.a.lingers(begin.Add(step.after), false); got != step.want {
			t.Errorf("%v after it closed its output it is waited for: %v, want %v", step.after-lingering, got, step.want)
		}
	}
}
