package agent

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/proc"
)

// A left is an agent whose rank has left a process running that may have its output open.
type left struct {
	*looped
	to      int // its end of stdout
	isReady bool
	used    time.Duration // of a processor
}

func newLeft(t *testing.T) *left {
	t.Helper()
	w := &left{looped: newLooped(t)}
	w.output.Ready = func(...int) (bool, time.Duration) { return w.isReady, w.used }
	w.ready = w.output.Ready
	stdout, stderr, err := w.output.Pipes(w.add(ctl.Rank{}).output)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(stdout); unix.Close(stderr) })
	w.to = stdout
	return w
}

// Processes left by ranks are not killed because they lacked a processor.
func TestWhatIsLeftRunningHasItsTurn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		open  bool
		least time.Duration // that it is waited for, whatever it does
		turn  time.Duration // of a processor, that it is to have
		most  time.Duration // until it is not waited for any more
	}{
		{"output open", true, lingering, lingerTurn, mostLingering},
		{"output closed", false, dyingTime, proc.ClockTick, proc.TurnTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			var w *left
			lingers := func(when string, after time.Duration, want bool) {
				t.Helper()
				if got := w.lingers(begin.Add(after), tt.open); got != want {
					t.Errorf("%s, after %v, it is waited for: %v, want %v", when, after, got, want)
				}
			}
			ended := func() {
				w = newLeft(t)
				lingers("when the ranks have ended", 0, true)
				lingers("while it has its time", tt.least-1, true)
			}
			ended()
			lingers("when it sleeps", tt.least, false)
			ended()
			w.isReady, w.used = true, tt.turn-1
			lingers("when it is ready to run", tt.least, true)
			w.used = tt.turn
			lingers("when it has had its turn", tt.least+proc.TurnLook, false)
			ended()
			w.isReady = true
			lingers("when it is ready to run", tt.least, true)
			lingers("when it is ready to run", tt.most-1, true)
			lingers("when it has been so for too long", tt.most+proc.TurnLook, false)
			ended()
			if _, err := unix.Write(w.to, []byte("x")); err != nil {
				t.Fatal(err)
			}
			lingers("when it has written", tt.least, true)
		})
	}
	w, begin := newLeft(t), time.Now()
	w.lingers(begin, true)
	w.used, w.isReady = lingerTurn, true
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{lingering, true}, {lingering + dyingTime, true}, {lingering + proc.TurnTime, false}} {
		if got := w.lingers(begin.Add(step.after), false); got != step.want {
			t.Errorf("%v after it closed its output it is waited for: %v, want %v", step.after-lingering,
				got, step.want)
		}
	}
}

// Processes left by ranks get their time to write once more after their output has waited for
// long.
func TestTimeWithoutCreditIsNotTimeToWrite(t *testing.T) {
	w, now := newLeft(t), time.Now()
	w.end.linger = linger{open: true, until: now.Add(time.Millisecond)}
	w.lingerOn(now)
	if left := w.end.linger.until.Sub(now); left < lingering {
		t.Errorf("%v are left for it to write, want %v", left, lingering)
	}
}
