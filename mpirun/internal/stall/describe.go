package stall

import (
	"slices"
	"time"

	"gompi/internal/seg"
	"gompi/mpirun/internal/ctl"
)

// Describe sets the activity of a joined rank, from its flight recorder: the newest unfinished
// call, or else the last call. site returns the place in the program of a call with a number, ""
// if unknown. A non-nil mpi states that the program calls MPI functions, and returns the name of
// a communicator.
func Describe(d *ctl.RankDoing, calls []seg.Recording, site func(number uint64) string, mpi seg.CommNames, now int64) {
	d.Marks = marks(calls)
	c, at := seg.Running(calls)
	switch {
	case len(calls) == 0 && mpi != nil:
		d.Text = "has called nothing but MPI_Init"
	case len(calls) == 0:
		d.Text = "has called nothing but Init"
	case c == nil:
		text, _ := describe(&calls[len(calls)-1], "", mpi)
		d.Text = "is in no call, the last was " + text
	default:
		d.Text, d.Site = describe(c, site(at), mpi)
		d.Text = "is in " + d.Text
		if c.Start != 0 {
			d.Since = time.Duration(max(1, now-c.Start))
		}
		if c.Kind.Collective() {
			d.In = ctl.Mark{Comm: c.Comm, Seq: c.Seq}
		}
	}
}

// describe returns a call, and its place.
func describe(c *seg.Recording, site string, mpi seg.CommNames) (text, at string) {
	if mpi != nil {
		return c.MPI(site, mpi(c.Comm))
	}
	return c.Text(), site
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
