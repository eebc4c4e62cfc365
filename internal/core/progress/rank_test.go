package progress_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/progress"
	"gompi/internal/world"
)

// A rank is an Engine and its Source: words that others store, without a lock.
type rank struct {
	progress.Engine
	bell     bell
	threads  *threadBell // the Parker, if it blocks threads
	ring     func()      // wakes the Parker
	words    []*word     // that may be stored
	asleep   atomic.Bool // who stores one has to ring
	blind    bool        // Arm finds nothing, but the Parker rings at once: so it is with sockets
	onPoll   func() int
	onStall  func()
	deadline time.Duration
	polls    int
	hinted   world.Rank         // at the last poll
	polled   map[world.Rank]int // how often, with this hint
	stalls   int
}

// A word is stored once. Somebody waits for it, or it ends an operation of its class.
type word struct {
	progress.Waiter
	class          progress.Class
	stored         atomic.Bool
	stalled, ended int
}

func (w *word) Stalled() { w.stalled++ }
func (w *word) Ended()   { w.ended++ }

func newWord() *word {
	w := new(word)
	w.Init(w)
	return w
}

// A bell is a Parker.
type bell struct {
	r     *rank
	c     chan struct{}
	armed bool
}

func (b *bell) Arm() {
	b.armed = true
	if b.r.news() {
		b.ring()
	}
}

func (b *bell) Disarm()            { b.armed = false }
func (b *bell) C() <-chan struct{} { return b.c }

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// A threadBell is a Parker that blocks threads. Its Sleep does not return before it is woken or
// ended, so that a wake-up that is lost shows.
type threadBell struct {
	*bell
	sleeps atomic.Int32
	over   chan struct{} // each receive ends a Sleep in vain
}

func (b *threadBell) Sleep(time.Duration) bool {
	b.sleeps.Add(1)
	select {
	case <-b.c:
		return true
	case <-b.over:
		return false
	}
}

func (b *threadBell) Interrupt()    { b.ring() }
func (b *threadBell) EndInterrupt() {}

func newRank(watch bool) *rank { return newRankOf(watch, nil) }

// newRankOf returns a rank with the Parker, nil for the usual one.
func newRankOf(watch bool, threads *threadBell) *rank {
	r := &rank{polled: map[world.Rank]int{}, threads: threads}
	r.bell = bell{r: r, c: make(chan struct{}, 1)}
	r.ring = r.bell.ring
	cfg := progress.Config{Source: r, Parker: &r.bell, Yield: runtime.Gosched, Watch: watch}
	if threads != nil {
		threads.bell, cfg.Parker = &r.bell, threads
	}
	r.Init(cfg)
	return r
}

func (r *rank) Poll(hint world.Rank) int {
	r.polls++
	r.hinted = hint
	r.polled[hint]++
	r.asleep.Store(false)
	n := 0
	for _, w := range r.words {
		if w.news() {
			r.MakeReady(&w.Waiter)
			r.End(w.class)
			n++
		}
	}
	if r.onPoll != nil {
		n += r.onPoll()
	}
	return n
}

func (r *rank) Arm() bool {
	r.asleep.Store(true)
	return r.blind || !r.news()
}

func (r *rank) news() bool { return slices.ContainsFunc(r.words, (*word).news) }

func (r *rank) Pending() bool           { return false }
func (r *rank) Deadline() time.Duration { return r.deadline }

func (r *rank) Stalled() {
	if r.stalls++; r.onStall != nil {
		r.onStall()
	}
}

func (w *word) news() bool { return !w.Ready() && w.stored.Load() }

// store stores a word, and wakes the rank if it sleeps.
func (r *rank) store(w *word) {
	w.stored.Store(true)
	if r.asleep.Load() {
		r.ring()
	}
}

// storesAt returns an onPoll that has a word stored after d, which is the rank's deadline.
func (r *rank) storesAt(w *word, d time.Duration) func() int {
	end := time.Now().Add(d)
	return func() int {
		if r.deadline = time.Until(end); r.deadline <= 0 {
			w.stored.Store(true)
		}
		return 0
	}
}

// test tests in a loop whether a word is stored.
func (r *rank) test(w *word) {
	get(r, func() bool { r.words = append(r.words, w); return true })
	for ready := false; !ready; {
		r.Lock()
		found := 0
		if !r.Polled() {
			found = r.Poll(world.None)
		}
		r.Tested(found)
		if ready = w.Ready(); ready {
			r.words = slices.DeleteFunc(r.words, func(v *word) bool { return v == w })
		}
		r.Exit()
	}
}

// wait waits for a word.
func (r *rank) wait(ctx context.Context, w *word) error {
	r.Lock()
	defer r.Unlock()
	r.words = append(r.words, w)
	err := r.Await(ctx, &w.Waiter)
	r.words = slices.DeleteFunc(r.words, func(v *word) bool { return v == w })
	if r.bell.armed && !r.Driven() {
		panic("the Parker is armed, but no goroutine sleeps")
	}
	return err
}

// start has another goroutine wait for a word.
func (r *rank) start(ctx context.Context, w *word) <-chan error {
	done := make(chan error, 1)
	go func() { done <- r.wait(ctx, w) }()
	return done
}

// operate begins an operation that a word ends, for which no goroutine waits.
func (r *rank) operate(c progress.Class) *word {
	w := newWord()
	w.class = c
	r.Lock()
	defer r.Exit()
	r.words = append(r.words, w)
	r.Begin(c)
	return w
}

// get returns what f does, with the lock held.
func get[T any](r *rank, f func() T) T {
	r.Lock()
	defer r.Unlock()
	return f()
}

// endSleeps has all that block their threads notice that their time is over.
func (r *rank) endSleeps() {
	for r.threads != nil {
		select {
		case r.threads.over <- struct{}{}:
		default:
			return
		}
	}
}

// polling lets others run until as many wait, one of whom polls.
func (r *rank) polling(waiting int) {
	for !get(r, func() bool { return len(r.words) == waiting && r.Polled() }) {
		runtime.Gosched()
	}
}

func (r *rank) close(t *testing.T) {
	r.Lock()
	defer r.Unlock()
	if err := r.Close(t.Context(), func() bool { return true }); err != nil {
		t.Error(err)
	}
}

// want fails the test unless every wait ends well.
func want(t *testing.T, waits ...<-chan error) {
	t.Helper()
	for i, done := range waits {
		if err := <-done; err != nil {
			t.Errorf("wait %d: %v", i, err)
		}
	}
}

// going fails the test if a wait has ended.
func going(t *testing.T, waits ...<-chan error) {
	t.Helper()
	for i, done := range waits {
		select {
		case err := <-done:
			t.Errorf("wait %d has ended: %v", i, err)
		default:
		}
	}
}

var errGaveUp = errors.New("gave up")

// bubble runs f in a bubble: a deadlock fails the test at once. It fails, too, if all
// goroutines slept before one was woken, by a timer, unless f says so.
func bubble(t *testing.T, takes time.Duration, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f(t)
		if d := time.Since(begin); d != takes {
			t.Errorf("it took %v, want %v", d, takes)
		}
	})
}
