package stall

import (
	"slices"
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
)

// Describe sets what a rank that has joined is doing, from its flight recorder: the newest
// unfinished call, or else the last one. It returns the number of the call whose call site is to be
// shown, 0 if there is none.
func Describe(d *ctl.RankDoing, calls []seg.Recording, now int64) uint64 {
	d.Marks = marks(calls)
	c, at := seg.Running(calls)
	switch {
	case len(calls) == 0:
		d.Text = "has called nothing but Init"
	case c == nil:
		d.Text = "is in no call, the last was " + calls[len(calls)-1].Text()
	default:
		d.Text = "is in " + c.Text()
		if c.Start != 0 {
			d.Since = time.Duration(max(1, now-c.Start))
		}
		if c.Kind.Collective() {
			d.In = ctl.Mark{Comm: c.Comm, Seq: c.Seq}
		}
	}
	return at
}

// marks returns the last collective on each communicator in the rank's recorded calls.
func marks(calls []seg.Recording) []ctl.Mark {
	var out []ctl.Mark
	for _, c := range slices.Backward(calls) {
		known := func(m ctl.Mark) bool { return m.Comm == c.Comm }
		if c.Kind.Collective() && !slices.ContainsFunc(out, known) {
			out = append(out, ctl.Mark{Comm: c.Comm, Seq: c.Seq})
		}
	}
	return out
}
