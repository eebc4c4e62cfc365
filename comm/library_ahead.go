package comm

import (
	"math/bits"
	"runtime"
	"time"

	"gompi/internal/mem"
)

// Collectives that the devices' library is given ahead of their turn. A collective in the
// order of a stream need not stop that: once there is a group, the library is given it
// in the call, between what the stream has and what comes later, as a program does that
// uses the library itself. Its turn comes when the stream has come to it; then the
// ranks compare their calls and wait for its end, as always.
//
// The library has to be given collectives in one order on all ranks, that of the calls.
// So this is for a call before whose turn there are none but of its kind; another stops
// its stream, and the library is given it in its turn. Ranks may differ in that: they
// do the same things, at other times.
//
// A rank cannot know yet where the others have their buffers. If those of one are
// elsewhere, it has no choice any more, and takes them aboard of its device.

// placeWithin is how long a call waits until the library has put it on the queue, which
// takes a thread of its own: a tenth of that, but for the first, for which libraries may
// make connections with others. Then the stream stops instead.
var placeWithin = time.Millisecond

// ahead gives the library o in the order of q, and returns nil if it does not serve for
// that. Nobody else gives it any meanwhile.
func (c *Comm) ahead(q Queue, o *operation) *task {
	l := c.library
	if o.unlike() || !l.suits(o) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group == nil || c.ch.Err() != nil {
		return nil
	}
	if word, _ := l.place(o); word == 0 {
		return nil
	}
	t, err := l.behind(q)
	if err != nil { // q's stop says what is wrong with it, if anything is
		return nil
	}
	if t.err = l.give(o); t.err == nil {
		t.err = t.enter(q)
	}
	return t
}

// behind returns a task that waits for the work that q has.
func (l *library) behind(q Queue) (*task, error) {
	before, err := q.NewMark()
	if err != nil {
		return nil, err
	}
	if err = before.Set(); err == nil {
		err = l.group.Queue().After(before)
	}
	var t *task
	if err == nil {
		t, err = l.task()
	}
	if err != nil {
		before.Close()
		return nil, err
	}
	t.before = before
	return t, nil
}

// enter makes later work of q wait for t, if that is placed in time.
func (t *task) enter(q Queue) error {
	for end := time.Now().Add(placeWithin); !t.placed; runtime.Gosched() {
		if err := t.place(); err != nil || !t.placed && time.Now().After(end) {
			return err
		}
	}
	return q.After(t.end)
}

// leave ends t, a task given ahead, with the outcome of its turn.
func (l *library) leave(t *task, err error) {
	if err != nil {
		l.fail(err)
	}
	t.before.Close() // an error is the device's, which has told it before
	l.end(t)
}

// aboard does o on memory of the group's device that stands for its buffers, since others
// have given it to the library.
func (l *library) aboard(w way, o *operation) error {
	on := *o
	send, recv := o.roles(l.c.Rank() == int(o.call.Root))
	err := l.take(0, &on.send, send)
	if err == nil {
		err = l.take(1, &on.recv, recv)
	}
	if err != nil {
		return l.fail(err)
	}
	if err := l.do(w, &on); err != nil || recv == read || recv == unused {
		return err
	}
	return l.at.Copy(o.recv, on.recv)
}

// take puts memory of the device in the place of b, of which it keeps two, with b's content
// if that counts. It stays for others: to free it may take the device until no stream
// stops.
func (l *library) take(i int, b *Buffer, as role) error {
	if as == unused {
		*b = Buffer{}
	}
	size, n := b.Size(), len(l.taken[i])
	if size == 0 {
		return nil
	}
	if n == 0 || l.taken[i][n-1].Size() < size {
		longer, err := l.at.Alloc(mem.U8, 1<<bits.Len(uint(size-1)))
		if err != nil {
			return err
		}
		l.taken[i] = append(l.taken[i], longer)
	}
	its := mem.Device(l.at, l.taken[i][len(l.taken[i])-1].Addr(), b.Type(), b.Len())
	from := *b
	if *b = its; as == written {
		return nil
	}
	return l.at.Copy(its, from)
}
