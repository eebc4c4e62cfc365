package rma

import (
	"gompi/internal/core/layout"
)

// Puts and gets by network devices, in which the target takes no part. The target still serves
// accumulates, locks, and all operations before a first message has connected the two ranks. Only a
// flush, which waits for both, orders these with the devices' operations. Accumulates stay with the
// target: devices have atomics of 8 bytes at most, for a few operators on integers, atomic among
// each other alone, not with the instructions by which the ranks of the target's host accumulate,
// unless the device reports that they are (IBV_ATOMIC_GLOB), which is rare. But MPI requires that
// all accumulates of a type exclude each other, on all ranks (MPI-5.0, section 12.7).

// writeRemote puts packed bytes into the runs of t.
func (w *Window) writeRemote(p *part, t *Target, packed []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[t.Rank].written = true
	return w.overRemote(t, packed, func(at uintptr, b []byte) (int, error) { return p.remote.Write(p.base+at, b) })
}

// readRemote is the inverse.
func (w *Window) readRemote(p *part, t *Target, room []byte, keep Keep) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.overRemote(t, room, func(at uintptr, b []byte) (int, error) {
		n, h, err := p.remote.Read(p.base+at, b)
		if n > 0 {
			w.pending[t.Rank].keep(w.Comm.Promised(h), keep)
		}
		return n, err
	})
}

// overRemote calls do for all bytes of the runs of t, until do has taken them. Devices make room by
// themselves. do returns the error of a lost rank, once the reason is known.
func (w *Window) overRemote(t *Target, packed []byte, do func(at uintptr, b []byte) (int, error)) (err error) {
	t.Layout.Runs(func(off, n int, _ layout.Element) {
		for at := uintptr(t.At + off); n > 0 && err == nil; {
			var done int
			if done, err = do(at, packed[:n]); done == 0 && err == nil {
				w.Comm.Progress(false)
			}
			at, packed, n = at+uintptr(done), packed[done:], n-done
		}
	})
	return err
}

// flushRemote begins to wait until the data written to a part is stored there. The lock is held.
func (w *Window) flushRemote(rank int) error {
	for p := &w.pending[rank]; p.written; {
		h, begun, err := w.parts[rank].remote.Flush()
		if err != nil {
			return err
		}
		if !begun {
			w.Comm.Progress(false)
			continue
		}
		p.keep(w.Comm.Promised(h), nil)
		p.written = false
	}
	return nil
}
