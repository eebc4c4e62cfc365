package network

import (
	"bytes"
	"slices"

	"gompi/internal/boot"
	"gompi/internal/machine"
	"gompi/internal/world"
)

// A loadMonitor finds out, as the job runs, whether this host's ranks have a processor each.
type loadMonitor struct {
	cards    Cards // of Init
	own      Card  // of this rank, then
	info     *boot.Info
	root     string // of the control groups' files: "/" but in tests
	affinity func() CPUs
}

// Monitor returns a function that reports whether the ranks of this host have a processor each now.
// A call reads files for 0.15 ms, and makes a hundred allocations.
func (cs Cards) Monitor(info *boot.Info, own Card) func() bool {
	return loadMonitor{cs, own, info, "/", affinity}.notOversubscribed
}

// NewCard returns a Card with this rank's processors and, in jobs on several nodes, the machine.
func NewCard(nodes int) Card {
	c := Card{CPUs: affinity(), Quota: machine.WholeCPUs("/"), Clock: clock()}
	if nodes > 1 {
		c.Machine = machineID()
	}
	return c
}

// notOversubscribed reports whether this host's ranks have a processor each. A rank sees only its
// own processors and quota, and takes a change for one of every rank of the host with equal values
// in Init: control groups and affinities mostly change for a whole job. Algorithms stay as agreed.
func (o loadMonitor) notOversubscribed() bool {
	then := o.own
	now := Card{CPUs: o.affinity(), Quota: machine.WholeCPUs(o.root)}
	cs := o.cards
	if now.Quota != then.Quota || !bytes.Equal(now.CPUs, then.CPUs) {
		cs = slices.Clone(cs)
		for r := range cs {
			if o.info.NodeIndex(world.Rank(r)) == o.info.Node {
				cs[r].follow(then, now)
			}
		}
	}
	return cs.Loads(o.info)[o.info.Node] <= 1
}

// follow updates the values of c that were equal to then to the values of now.
func (c *Card) follow(then, now Card) {
	if bytes.Equal(c.CPUs, then.CPUs) {
		c.CPUs = now.CPUs
	}
	if c.Quota == then.Quota {
		c.Quota = now.Quota
	}
}
