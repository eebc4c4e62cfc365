package job

import (
	"strings"
	"testing"

	"gompi/internal/boot/wire"
	"gompi/internal/world"
	"gompi/mpirun/internal/cmdline"
	"gompi/mpirun/internal/ctl"
	"gompi/mpirun/internal/inventory"
)

// afterDeaths returns a job of three ranks on host a and one on b, with one spare place on each,
// whose ranks die and then the rest call Restore.
func afterDeaths(t *testing.T, dead ...world.Rank) (*Job, []*fakeAgent) {
	k := newTestJob(t, &cmdline.Spec{Recover: true}, nil)
	j := k.job
	var hosts []*host
	var links []*fakeAgent
	for _, name := range []string{"a", "b"} {
		l := &fakeAgent{name: name, wake: make(chan struct{}, 1)}
		links, hosts = append(links, l), append(hosts, &host{Entry: inventory.Entry{Host: name, Agent: l}})
	}
	j.recover.prepare(hosts, []int{0, 0, 0, 1}, 1)
	j.cards = make([][]byte, 6)
	for _, r := range dead {
		j.endedRank(r, true)
	}
	for r := range 4 {
		v := wire.Vote{Comm: 1, Seq: 1, Kind: wire.Restore, Members: []wire.Span{{First: 0, Count: 4}}}
		j.voted(hosts[j.recover.Node(r)], world.Rank(r), &v)
	}
	return j, links
}

// One place for two dead of a host: none is started in vain, and no place is used.
func TestAllThatDiedAreReplacedOrNone(t *testing.T) {
	_, links := afterDeaths(t, 1, 2, 3)
	for _, l := range links {
		if started := got[*ctl.Replace](l); started != nil {
			t.Errorf("%s has a rank started in vain: %+v", l.name, started[0])
		}
	}
	o := passed[*wire.Outcome](links[0])
	if len(o) != 1 || !strings.Contains(o[0].Failed, "cannot be replaced") {
		t.Errorf("outcomes %+v, want one that fails", o)
	}
	_, links = afterDeaths(t, 2, 3)
	for i, l := range links {
		if started := got[*ctl.Replace](l); len(started) != 1 || started[0].Rank != 4+i {
			t.Errorf("%s: %+v, want rank %d started", l.name, started, 4+i)
		}
	}
}

// A vote that cannot be counted is answered: its sender does not wait for the rest of its time.
func TestAVoteThatDoesNotCountIsAnswered(t *testing.T) {
	j, links := afterDeaths(t)
	answered := len(passed[*wire.Outcome](links[0]))
	v := wire.Vote{Comm: 2, Seq: 1, Kind: wire.Shrink, Members: []wire.Span{{First: 0, Count: 7}}}
	j.voted(j.recover.nodes[0], 1, &v)
	o := passed[*wire.Outcome](links[0])[answered:]
	if len(o) != 1 || !strings.Contains(o[0].Failed, "it names rank 6 as a member: want ranks 0 to 5") ||
		len(o[0].Living) != 1 || o[0].Living[0].Rank != 1 {
		t.Errorf("outcomes %+v, want one that fails for rank 1", o)
	}
	v.Members[0].Count = 6
	j.voted(j.recover.nodes[0], 6, &v) // no rank waits for an answer
	if more := passed[*wire.Outcome](links[0])[answered+1:]; len(more) != 0 {
		t.Errorf("an outcome for no rank of the job: %+v", more)
	}
}
