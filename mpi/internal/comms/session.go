package comms

import (
	"fmt"
	"slices"
	"strings"

	"gompi/internal/core"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

var Sessions = abi.NewRegistry(abi.SessionNull, func(s *Session) abi.Handle { return s.Handle })

// A Session is a session with a handle. All have the same process sets.
type Session struct {
	Handle abi.Handle

	errs.Holder
	Buffer Buffer // for the communicators that were made from it
}

// NewSession is called when the job is joined.
func NewSession(h *errs.Errhandler) *Session {
	s := &Session{Holder: errs.Holder{Handler: h}}
	s.Handle = Sessions.Add(s)
	return s
}

func RemoveSession(h *abi.Handle) error {
	if err := Sessions.Find(*h).Check(); err != nil {
		return err
	}
	Sessions.Remove(*h)
	*h = Sessions.Null
	return nil
}

// Check returns an error if s is not valid.
func (s *Session) Check() error {
	if s == nil {
		return errs.New(errs.Session, "the session is not valid")
	}
	return nil
}

// ---- Process sets ----

// A processSet is a named set of ranks. Its name is a URI, compared without regard to case.
type processSet struct {
	name string
	has  func(c *core.Comm, rank int) bool // whether the set has a rank of the world
}

// processSets are the two sets of the standard, and Open MPI's set of the ranks of a host.
var processSets = []processSet{
	{"mpi://WORLD", func(*core.Comm, int) bool { return true }},
	{"mpi://SELF", func(c *core.Comm, rank int) bool { return rank == c.Rank() }},
	{"mpix://SHARED", func(c *core.Comm, rank int) bool {
		return rank == c.Rank() || c.Maps(rank)
	}},
}

func groupOfSet(s *Session, name abi.Text) (core.Group, error) {
	named := func(p processSet) bool { return strings.EqualFold(p.name, name.String()) }
	i := slices.IndexFunc(processSets, named)
	if i < 0 {
		return core.Group{}, errs.New(errs.Arg, "there is no process set %q", name.String())
	}
	var ranks []int
	for r := range World.P2P.Size() {
		if processSets[i].has(World.P2P, r) {
			ranks = append(ranks, r)
		}
	}
	return World.P2P.Group().Incl(ranks...)
}

func SessionGetNumPsets(s *Session, info *infos.Info) (int, error) {
	return len(processSets), nil
}

// SessionGetNthPset stores at most *room bytes of a name, with a zero at the end, and sets *room
// to the room for the whole name.
func SessionGetNthPset(s *Session, info *infos.Info, n int, room *int, name abi.Text) error {
	if n < 0 || n >= len(processSets) {
		return errs.New(errs.Arg, "process set %d is not from 0 to %d", n, len(processSets)-1)
	}
	name.Set(processSets[n].name, *room)
	*room = len(processSets[n].name) + 1
	return nil
}

func SessionGetPsetInfo(s *Session, name abi.Text) (*infos.Info, error) {
	g, err := groupOfSet(s, name)
	if err != nil {
		return nil, err
	}
	return infos.New("mpi_size", fmt.Sprint(g.Size())), nil
}

func GroupFromSessionPset(s *Session, name abi.Text) (*Group, error) {
	g, err := groupOfSet(s, name)
	if err != nil {
		return nil, err
	}
	return newGroup(g, s), nil
}

func SessionGetInfo(s *Session) (*infos.Info, error) {
	return infos.New("thread_level", "MPI_THREAD_MULTIPLE"), nil
}

// SessionSetInfo is Open MPI's. Hints are ignored.
func SessionSetInfo(s *Session, info *infos.Info) error { return nil }

// ---- Errors ----

func SessionCallErrhandler(s *Session, code int) error {
	s.callHandler("MPI_Session_call_errhandler", CalledByProgram(code))
	return nil
}

func (s *Session) callHandler(name string, err error) {
	CallHandler(s.Errhandler(), errs.KindSession, s.Handle, "a session", name, err)
}

// Raise calls the error handler of s, if that is not nil, and returns the class.
func (s *Session) Raise(name string, err error) abi.Class {
	if s == nil {
		return Unattached.Raise(name, err)
	}
	errs.Note(name, "a session", err)
	s.callHandler(name, err)
	return errs.ClassOf(err)
}

// Raise calls the error handler of the session that g was made from, as Session.Raise does.
func (g *Group) Raise(name string, err error) abi.Class {
	if g == nil {
		return Unattached.Raise(name, err)
	}
	return g.session.Raise(name, err)
}

// RaiseBy calls h for a session that could not be made.
func RaiseBy(h *errs.Errhandler, name string, err error) abi.Class {
	if h == nil || h.Check(errs.KindSession) != nil {
		return Unattached.Raise(name, err)
	}
	return (&Session{Handle: Sessions.Null, Holder: errs.Holder{Handler: h}}).Raise(name, err)
}
