package comm

import (
	"bytes"
	"slices"
	"time"

	"gompi/internal/boot"
	"gompi/internal/cgroup"
)

// judgeEvery is how long a judgement serves at least, but in tests: to judge takes 0.15
// ms of reading files, and a hundred allocations.
var judgeEvery = 30 * time.Second

// An outlook is what a rank judges by, while it runs, whether the ranks of its host have
// a processor each.
type outlook struct {
	cards    cards // as they were when all met
	info     *boot.Info
	root     string // of the control groups' files: "/" but in tests
	affinity func() cpuset
}

// roomy reports whether the ranks of this host have a processor each. A rank sees only
// its own processors and quota; but what narrows or widens those is mostly a control
// group, or a hand that means all of the job: so what has become of them is taken to
// have become of those of every rank of the host that had the same when all met.
// Algorithms stay as all have agreed on them.
func (o outlook) roomy() bool {
	then := o.cards[o.info.Rank]
	now := card{cpus: o.affinity(), quota: cgroup.WholeCPUs(o.root)}
	cs := o.cards
	if now.quota != then.quota || !bytes.Equal(now.cpus, then.cpus) {
		cs = slices.Clone(cs)
		for r := range cs {
			if o.info.NodeIndex(r) == o.info.Node {
				cs[r].follow(then, now)
			}
		}
	}
	return cs.loads(o.info)[o.info.Node] <= 1
}

// follow makes c have what another rank has now, where it had the same as that one then.
func (c *card) follow(then, now card) {
	if bytes.Equal(c.cpus, then.cpus) {
		c.cpus = now.cpus
	}
	if c.quota == then.quota {
		c.quota = now.quota
	}
}
