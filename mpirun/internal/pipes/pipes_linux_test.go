package pipes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/loop"
	"gompi/mpirun/internal/proc"
)

// A written is the output of a rank, which a test writes to.
type written struct {
	*testing.T
	all *Outputs
	o   *Output
	s   *stream
	to  int // the rank's end

	sent    []string      // to the launcher
	ready   bool          // the rank is
	used    time.Duration // its processor time
	process int
}

// newWritten makes the pipes of a rank, of which one stream is written to.
func newWritten(t *testing.T, kind ctl.Stream) *written {
	t.Helper()
	w := &written{T: t, process: 1}
	w.all = &Outputs{Loop: new(loop.Loop), Window: 1 << 20}
	w.all.Report = func(m ctl.Message) { w.sent = append(w.sent, string(m.(*ctl.Output).Data)) }
	w.all.Ready = func(...int) (bool, time.Duration) { return w.ready, w.used }
	if err := w.all.Loop.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.all.Loop.Close)
	w.o = w.all.Add(0, func() int { return w.process })
	stdout, stderr, err := w.all.Pipes(w.o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(stdout); unix.Close(stderr) })
	if w.s, w.to = &w.o.stdout, stdout; kind == ctl.Stderr {
		w.s, w.to = &w.o.stderr, stderr
	}
	return w
}

// write writes as the rank does.
func (w *written) write(text string) {
	w.Helper()
	if n, err := unix.Write(w.to, []byte(text)); err != nil || n != len(text) {
		w.Fatalf("%d bytes written of %q, %v", n, text, err)
	}
}

// sends checks which pieces of output have been sent to the launcher.
func (w *written) sends(when string, want ...string) {
	w.Helper()
	if !slices.Equal(w.sent, want) {
		w.Errorf("%s %q is sent, want %q", when, w.sent, want)
	}
	w.sent = nil
}

// partials sends the partial lines due at now.
func (w *written) partials(now time.Time) { w.all.SendPartials(now, false) }

// A line that grows is shown when its first byte has waited for long enough.
func TestALineThatGrowsIsShown(t *testing.T) {
	w := newWritten(t, ctl.Stdout)
	w.write("10% ")
	w.all.read(w.s)
	due := w.s.due
	if due.After(time.Now().Add(LineTimeout)) {
		t.Errorf("it is due %v from now", time.Until(due))
	}
	w.write("20% ")
	w.all.read(w.s)
	w.partials(due.Add(-1))
	w.sends("before it is due")
	w.partials(due)
	w.sends("when it is due", "10% 20% ")
	w.write("30% ")
	w.all.read(w.s)
	w.partials(w.s.due)
	w.sends("when its next piece is due", "30% ")
}

// The end of a line that is in the rank's pipe, or that the rank cannot write, is waited for.
func TestNoLineIsTornWhileItsEndIsNotRead(t *testing.T) {
	t.Run("the agent is late", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("one\ntw")
		w.all.read(w.s)
		w.write("o\n")
		w.partials(w.s.due)
		w.sends("late", "one\n", "two\n")
	})
	t.Run("no credit", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("one\ntw")
		w.all.Window = 1
		w.all.read(w.s)
		w.sends("with credit", "one\n")
		due := w.s.due
		w.write("o")
		w.partials(due)
		w.partials(due.Add(time.Hour))
		w.sends("without credit")
		w.all.Credit(1 << 20)
		if w.s.due.IsZero() || w.s.due.Equal(due) {
			t.Errorf("with credit again the line is due at %v, was at %v; want a new time", w.s.due, due)
		}
		w.write("\n")
		w.all.read(w.s)
		w.sends("with credit again", "two\n")
	})
	t.Run("the rank ends without credit", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.all.read(w.s)
		w.write("o\n")
		w.all.Window = 0
		w.process = 0
		w.all.Drain(w.o, false)
		w.sends("without credit")
		w.all.Credit(1 << 20)
		w.all.read(w.s)
		w.sends("with credit", "two\n")
	})
	t.Run("the ranks are stopped", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.all.read(w.s)
		due := w.s.due
		w.all.SendPartials(due, true)
		w.sends("while they are stopped")
		w.all.Continue()
		w.partials(due)
		w.sends("as soon as they continue")
		w.partials(w.s.due)
		w.sends("when it is due again", "tw")
	})
	t.Run("the agent was stopped", func(t *testing.T) {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.all.read(w.s)
		due := w.s.due
		w.partials(due.Add(time.Hour))
		w.sends("as soon as it continues")
		w.partials(w.s.due)
		w.sends("when it is due again", "tw")
	})
}

// A line is not torn because its rank gets no processor, and a prompt is shown at once.
func TestALineWaitsUntilItsRankHasHadItsTurn(t *testing.T) {
	begin := func(t *testing.T) *written {
		w := newWritten(t, ctl.Stdout)
		w.write("tw")
		w.all.read(w.s)
		w.ready = true
		w.partials(w.s.due)
		w.sends("when the rank is ready to run")
		return w
	}
	t.Run("its end comes", func(t *testing.T) {
		w := begin(t)
		w.write("o\n")
		w.partials(w.s.due)
		w.sends("when the rank has run", "two\n")
	})
	t.Run("the rank computes", func(t *testing.T) {
		w := begin(t)
		w.used += proc.ClockTick
		w.partials(w.s.due)
		w.sends("when the rank has had its turn", "tw")
	})
	t.Run("the rank waits", func(t *testing.T) {
		w := begin(t)
		w.ready = false
		w.partials(w.s.due)
		w.sends("when the rank waits", "tw")
	})
	t.Run("the rank gets no processor for long", func(t *testing.T) {
		w := begin(t)
		for begun := w.s.turn.Begun; w.s.due.Sub(begun) < proc.TurnTime; {
			w.partials(w.s.due)
		}
		w.sends("while it is waited for")
		w.partials(w.s.due)
		w.sends("after that", "tw")
	})
	t.Run("the next line", func(t *testing.T) {
		w := begin(t)
		w.used += proc.ClockTick
		w.write("o\nthr")
		w.partials(w.s.due)
		w.sends("when the rank has run", "two\n")
		w.partials(w.s.due)
		w.sends("when the rank is to have another turn")
	})
}

// The report of a failure shows the rank's last output, even if the launcher has no room for
// output.
func TestTheTailOfAFailedRankNeedsNoCredit(t *testing.T) {
	w := newWritten(t, ctl.Stderr)
	w.write("no disk\n")
	w.all.Window = 0
	w.all.Drain(w.o, false)
	if tail := string(w.o.Tail()); tail != "" {
		t.Errorf("of a rank that ended well %q is read without credit", tail)
	}
	w.all.Drain(w.o, true)
	if tail := string(w.o.Tail()); tail != "no disk\n" {
		t.Errorf("the tail is %q, want the rank's last words", tail)
	}
}

// Credit reports whether output has waited for long.
func TestCreditReportsWhetherOutputHasWaited(t *testing.T) {
	for _, since := range []time.Duration{0, time.Minute} {
		w := newWritten(t, ctl.Stdout)
		w.write("x")
		w.all.Window = 0
		w.all.read(w.s)
		w.all.haltedAt = time.Now().Add(-since)
		if since == 0 {
			w.all.haltedAt = time.Now().Add(time.Hour)
		}
		if long := w.all.Credit(1 << 20); long != (since > 0) {
			t.Errorf("halted %v ago: %v", since, long)
		}
	}
}

func TestLastLinesKeepsTheEnd(t *testing.T) {
	var twelve strings.Builder
	for i := range 12 {
		fmt.Fprintf(&twelve, "line %d\n", i)
	}
	tests := map[string]string{
		"": "", "a": "a", "a\n": "a\n", "a\nb": "a\nb", "\n\n": "\n\n",
		twelve.String(): strings.SplitN(twelve.String(), "\n", 3)[2],
	}
	for in, want := range tests {
		if got := string(lastLines([]byte(in), tailLines)); got != want {
			t.Errorf("lastLines(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAPanicIsShownFromItsBeginning(t *testing.T) {
	frames := strings.Repeat("main.f()\n\t/x/main.go:3\n", 20)
	for in, want := range map[string]string{
		"a\npanic: b\n\ngoroutine 1 [running]:\n" + frames: "panic: b\n\ngoroutine 1 [running]:\n" + frames[:len(frames)/20*3] +
			"main.f()\n",
		"fatal error: c\n\ngoroutine 7 gp=0x1 [x]:\nf()\n\ta.go\nexit status 2\n": "fatal error: c\n\ngoroutine 7 gp=0x1 [x]:\nf()\n\ta.go\nexit status 2\n",
		"panic: logged\n\ngoroutine 1 [running]:\n" + frames + "no input\n":       frames[len(frames)/20*15+len("main.f()\n"):] + "no input\n",
		"panic: said\n" + strings.Repeat("line\n", 20):                            strings.Repeat("line\n", tailLines),
	} {
		if got := string(Tail([]byte(in))); got != want {
			t.Errorf("Tail(%q) = %q, want %q", in, got, want)
		}
	}
}
