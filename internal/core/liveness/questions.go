package liveness

import (
	"context"
	"slices"
	"time"

	"gompi/internal/core/progress"
	"gompi/internal/world"
)

const (
	// ReasonTimeout bounds the time for which the loss of a rank waits for the launcher's news of
	// that rank's end. A killed process is reaped within milliseconds of its connections' end, but
	// the launcher may wait for a processor. A cut network has no such news to wait for.
	ReasonTimeout = 2 * time.Second
	// fateTime bounds a collective's wait for the launcher's news if an awaited rank has left, or
	// if calls differ. The rank's process may have failed, or left because of an error; another
	// rank may know which calls differ.
	fateTime = 200 * time.Millisecond
)

// A question waits for news of the launcher.
type question struct {
	suspect  world.Rank // a rank that a transport has lost, None for another question
	due      time.Time
	answered func() bool
	decide   func() // called when answered or due, or when no news will come
}

// after calls decide when answered returns true, and otherwise after fateTime. If no news can
// come, after calls decide at once.
func (k *Ranks) after(answered func() bool, decide func()) {
	if k.cfg.Boot == nil || k.ends || answered() {
		decide()
		return
	}
	k.ask(question{suspect: world.None, due: time.Now().Add(fateTime), answered: answered, decide: decide})
}

// await waits until answered returns true, for fateTime at most. The caller is a goroutine inside
// a call, which waits in w, and gives the lock away meanwhile.
func (k *Ranks) await(w *progress.Waiter, answered func() bool) {
	k.after(answered, func() { k.cfg.Progress.MakeReady(w) })
	k.cfg.Progress.Await(context.Background(), w) // never fails: this context never ends
}

func (k *Ranks) ask(q question) {
	k.questions = append(k.questions, q)
	k.cfg.Progress.Shorten()
}

// Asking reports whether there are questions. Then Decide has to be called until there are none.
func (k *Ranks) Asking() bool { return len(k.questions) > 0 }

// Deadline returns how soon Decide has to be called, 0 if there are no questions.
func (k *Ranks) Deadline() time.Duration {
	if len(k.questions) == 0 {
		return 0
	}
	first := slices.MinFunc(k.questions, func(a, b question) int { return a.due.Compare(b.due) })
	return max(time.Until(first.due), 1)
}

// Decide decides the questions that are answered or due. The result is their number.
func (k *Ranks) Decide() (n int) {
	now := time.Now()
	for i := 0; i < len(k.questions); {
		q := k.questions[i]
		if !k.ends && now.Before(q.due) && !q.answered() {
			i++
			continue
		}
		k.questions = slices.Delete(k.questions, i, i+1)
		q.decide() // may ask, and so append
		n++
	}
	return n
}
