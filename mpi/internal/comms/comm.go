package comms

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"gompi/internal/calls"
	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// Forever is the context of blocking calls: MPI's have no deadline. The death of a peer, or its
// leaving, ends them.
var Forever = context.Background()

// In is Forever for the collectives of a function in calls.Functions.
func In(function string) context.Context { return core.Within(Forever, calls.Functions[function]) }

// InBackground is the context of operations on goroutines of gompi's own. If an operation needs a
// function of the program, a thread of the program calls the function during any of that thread's
// calls of MPI.
var InBackground = core.InBackground(Forever)

var Registry = abi.NewRegistry(abi.CommNull, func(c *Comm) abi.Handle { return c.Handle })

// A Comm is a communicator with a handle.
type Comm struct {
	Handle abi.Handle
	P2P    *core.Comm // for messages and, within a single group, collectives
	shift  int        // the number in P2P of the first rank of the remote group
	Inter  *Inter     // nil within a single group

	session *Session    // the session of the communicator, nil if none
	making  atomic.Bool // by MPI_Comm_idup
	freed   atomic.Bool // by the program
	Buffer  Buffer      // for its buffered sends alone
	votes   queue       // of MPI_Comm_shrink and MPI_Comm_agree

	attrs.Attributes
	errs.Holder

	mu       sync.Mutex // guards the following
	name     string
	private  []*core.Comm // of persistent collectives, which go with the communicator when it is revoked
	kept     int          // how many persistent requests and matched messages keep the communicator open
	revoked  bool         // by this rank
	acked    int          // how many of its dead are acknowledged
	Topology Topology
}

var (
	World = &Comm{Handle: abi.CommWorld, name: "MPI_COMM_WORLD"}
	self  = &Comm{Handle: abi.CommSelf, name: "MPI_COMM_SELF"}
)

// RankOf returns the number in P2P of a rank that messages go to.
func (c *Comm) RankOf(rank int) int { return rank + c.shift }

func (c *Comm) SourceOf(rank int) int {
	if rank == abi.AnySource {
		return core.AnySource
	}
	return c.RankOf(rank)
}

// Peers returns the number of ranks that messages can go to: the size of the remote group, if there
// is one.
func (c *Comm) Peers() int {
	if c.Inter != nil {
		return c.Inter.Remote.Size()
	}
	return c.P2P.Size()
}

// group returns the local group.
func (c *Comm) group() core.Group {
	if c.Inter != nil {
		return c.Inter.Local.Group()
	}
	return c.P2P.Group()
}

// StatusOf returns MPI's status for st.
func (c *Comm) StatusOf(st core.Status) abi.Status {
	s := abi.Status{Source: int32(st.Source), Tag: int32(st.Tag), Bytes: int64(st.Bytes)}
	switch {
	case st.Source == core.AnySource:
		s.Source = abi.AnySource
	default:
		s.Source -= int32(c.shift)
	}
	if st.Tag == core.AnyTag {
		s.Tag = abi.AnyTag
	}
	return s
}

// CheckSource returns an error if the source or the tag of a receive is not valid.
func (c *Comm) CheckSource(source, tag int) error {
	if c == nil {
		return errs.New(errs.Comm, "the communicator is not valid")
	}
	if tag != abi.AnyTag && (tag < 0 || tag > abi.TagUB) {
		return errs.New(errs.Tag, "the tag is not from 0 to %d, and not MPI_ANY_TAG", abi.TagUB)
	}
	if source == abi.ProcNull {
		return c.Revoked()
	}
	if source != abi.AnySource && (source < 0 || source >= c.Peers()) {
		return errs.New(errs.Rank, "rank %d is not from 0 to %d, and not MPI_ANY_SOURCE", source, c.Peers()-1)
	}
	return nil
}

// Check returns an error if c is not valid.
func (c *Comm) Check() error {
	if c == nil {
		return errs.New(errs.Comm, "the communicator is not valid")
	}
	return nil
}

// CheckIntra returns an error for an intercommunicator, too.
func (c *Comm) CheckIntra() error {
	if c != nil && c.Inter != nil {
		return errs.New(errs.Comm, "the communicator is an intercommunicator")
	}
	return c.Check()
}

// adopt gives a communicator of core a handle, with the error handler of c. d is nil on a rank
// outside the new communicator.
func (c *Comm) adopt(d *core.Comm, err error) (*Comm, error) {
	if err != nil || d == nil {
		return nil, err
	}
	n := &Comm{P2P: d, Holder: errs.Holder{Handler: c.Errhandler()}, session: c.session}
	n.Handle = Registry.Add(n)
	return n, nil
}

func CommSize(c *Comm) (int, error) {
	if c.Inter != nil {
		return c.Inter.Local.Size(), nil
	}
	return c.P2P.Size(), nil
}

func CommRank(c *Comm) (int, error) {
	return c.Rank(), nil
}

// Rank returns this rank's number in its own group.
func (c *Comm) Rank() int {
	if c.Inter != nil {
		return c.Inter.Local.Rank()
	}
	return c.P2P.Rank()
}

func CommCompare(a, b *Comm) (int, error) {
	switch {
	case a == nil || b == nil:
		return 0, errs.New(errs.Comm, "a communicator is not valid")
	case a == b:
		return abi.Identical, nil
	case (a.Inter == nil) != (b.Inter == nil):
		return abi.Unequal, nil
	}
	result := compare(a.group(), b.group())
	if a.Inter != nil {
		result = max(result, compare(a.Inter.Remote, b.Inter.Remote))
	}
	return max(result, abi.Congruent), nil
}

func CommDup(c *Comm) (*Comm, error) { return CommDupWithInfo(c, nil) }

// CommDupWithInfo ignores hints, like all functions here. It copies attributes by their copy
// functions.
func CommDupWithInfo(c *Comm, info *infos.Info) (*Comm, error) {
	d, err := c.dup()
	if err != nil {
		return nil, err
	}
	if c.Topology.Kind != 0 {
		messages, err := d.P2P.Dup(Forever)
		if err != nil {
			return nil, err
		}
		d.Topology = c.Topology.over(d.P2P, messages)
	}
	if err := c.CopyAttributes(attrs.KindComm, c.Handle, &d.Attributes); err != nil {
		_ = CommFree(&d.Handle)
		return nil, err
	}
	return d, nil
}

func (c *Comm) dup() (*Comm, error) {
	if c.Inter != nil {
		return c.Inter.dup(c)
	}
	return c.adopt(c.P2P.Dup(Forever))
}

func CommSplit(c *Comm, color, key int) (*Comm, error) { return c.split(calls.Split, color, key) }

func (c *Comm) split(of calls.Kind, color, key int) (*Comm, error) {
	if color < 0 && color != abi.Undefined {
		return nil, errs.New(errs.Arg, "the color is %d: want 0 or more, or MPI_UNDEFINED", color)
	}
	if color == abi.Undefined {
		color = core.Undefined
	}
	if c.Inter != nil {
		return c.Inter.split(of, c, color, key)
	}
	return c.adopt(c.P2P.Split(core.Within(Forever, of), color, key))
}

// CommSplitType knows the ranks that share memory, as the ranks of a host do.
func CommSplitType(c *Comm, how, key int, info *infos.Info) (*Comm, error) {
	switch how {
	case abi.Undefined, abi.SplitUnguided, abi.SplitGuided:
		return c.split(calls.SplitHost, abi.Undefined, key)
	case abi.SplitShared:
		return c.split(calls.SplitHost, c.firstToShare(), key)
	}
	return nil, errs.New(errs.Arg, "the split type is not MPI_COMM_TYPE_SHARED or MPI_UNDEFINED")
}

// firstToShare returns the first rank of P2P with which this rank can share memory, as for
// MPI_Win_allocate_shared: itself, if there is no earlier rank.
func (c *Comm) firstToShare() int {
	first := 0
	for first != c.P2P.Rank() && !c.P2P.Maps(first) {
		first++
	}
	return first
}

// CommGetParent returns nil: no program was started by MPI_Comm_spawn.
func CommGetParent() (*Comm, error) { return nil, nil }

func CommCreate(c *Comm, g *Group) (*Comm, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if c.Inter != nil {
		return c.Inter.create(c, g)
	}
	return c.adopt(c.P2P.Create(Forever, g.Group))
}

func CommCreateGroup(c *Comm, g *Group, tag int) (*Comm, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if !slices.Contains(g.Translate(c.group()), c.Rank()) {
		return nil, nil
	}
	return c.adopt(c.P2P.CreateGroup(Forever, g.Group, tag))
}

// CommFree is CommDisconnect, too: there are no connections to cut.
func CommFree(h *abi.Handle) error {
	c := Registry.Find(*h)
	switch {
	case c == nil || c.freed.Load():
		return errs.New(errs.Comm, "the communicator is not valid")
	case c == World || c == self:
		return errs.New(errs.Comm, "%s is not freed", c.Name())
	}
	if err := c.DeleteAttributes(attrs.KindComm, c.Handle); err != nil {
		return err
	}
	freeing.Lock()
	unlend(c)
	unused := c.retire()
	retired = append(retired, c)
	retired = slices.DeleteFunc(retired, func(c *Comm) bool {
		if HasRequests(c) || !c.unused() {
			return false
		}
		Registry.Remove(c.Handle)
		return true
	})
	freeing.Unlock()
	*h = Registry.Null
	if unused {
		c.close()
	}
	return nil
}

// retired are freed communicators that keep their handles: the error handlers of requests get
// these, and the face knows receives by them. freeing guards retired.
var retired []*Comm

// HasRequests reports whether there are requests of c. Package p2p sets this variable.
var HasRequests = func(c *Comm) bool { return false }

// Freed reports whether the program has freed c. c keeps its handle as long as it has requests.
func (c *Comm) Freed() bool { return c.freed.Load() }

func CommGroup(c *Comm) (*Group, error) {
	return newGroup(c.group(), nil), nil
}

func CommTestInter(c *Comm) (bool, error) {
	return c.Inter != nil, nil
}

func CommRemoteSize(c *Comm) (int, error) {
	return c.Inter.Remote.Size(), nil
}

func CommRemoteGroup(c *Comm) (*Group, error) {
	return newGroup(c.Inter.Remote, nil), nil
}

func CommSetInfo(c *Comm, info *infos.Info) error { return nil }

// CommGetInfo returns no hints, since none that was set is heeded.
func CommGetInfo(c *Comm) (*infos.Info, error) {
	return infos.New(), nil
}
