package shmcoll

import (
	"gompi/internal/core/call"
	"gompi/internal/core/path"
)

// resolve asks the questions of p until the members answer a question with yes, and returns the
// remaining Path.
func (c *Collectives) resolve(p *path.Path, o *call.Call, r *run) (*path.Path, error) {
	for p.Ask != path.Nothing {
		if p.Ask == path.BlockLengths {
			longest, err := c.agreeLengths(o, r)
			if err != nil {
				return nil, err
			}
			p = c.paths.Sized(o.Kind, longest)
			continue
		}
		if yes, err := c.ask(p, o, r); yes || err != nil {
			return p, err
		}
		p = p.Otherwise
	}
	return p, nil
}

// ask returns the answer to the question of p, the same on all members.
func (c *Collectives) ask(p *path.Path, o *call.Call, r *run) (yes bool, err error) {
	switch p.Ask {
	case path.SharedHeap:
		return c.exchangeVectors(o, r, false)
	case path.CrossMemory:
		if yes, err = c.reachable(); !yes {
			return false, err
		}
		r.chosen = true
		if byKernel, err := c.choose(p.Kernel, orByKernel, o, r); !byKernel || err != nil {
			return false, err
		}
		return c.exchangeVectors(o, r, true)
	}
	if bytes := c.bytes(o, r); bytes < urgentFrom && c.calls < patience {
		c.calls++
		return false, nil
	}
	return c.HasLarge(&r.compared)
}

// The large buffers, of up to 2 MiB a rank, are claimed by the first call of urgentFrom bytes, or
// after as many shorter ones: a program may have many communicators, and make few calls of each.
const urgentFrom, patience = 32 << 10, 64

// bytes returns the bytes of a rank that a call moves, the same on all members.
func (c *Collectives) bytes(o *call.Call, r *run) int {
	if o.Kind.LocalCounts() {
		return r.t.Longest * r.t.Size
	}
	return c.paths.Payload(o)
}

// agreeLengths returns the bytes of the longest block of all members.
func (c *Collectives) agreeLengths(o *call.Call, r *run) (int, error) {
	t := c.transferOf(o, r)
	sent, expected, longest := t.Lengths()
	longest, err := c.AgreeLengths(sent, expected, longest, t.Lo)
	t.Longest, r.compared = longest, true
	return longest * t.Size, err
}

// exchangeVectors reports whether all vectors of o can be reached: in the heap and, if cross is
// set, in private memory. From then on other members may access this member's vectors.
func (c *Collectives) exchangeVectors(o *call.Call, r *run, cross bool) (all bool, err error) {
	if all, err = c.exchangePlaces(c.placesOf(o, r, cross)); err != nil {
		c.Shut()
	}
	if !all {
		c.own = [2][]byte{}
	}
	return all, err
}
