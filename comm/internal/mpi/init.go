package mpi

import (
	"context"
	"fmt"
	"os"
	"time"

	"gompi/comm"
	"gompi/comm/internal/mpi/datatype"
	"gompi/comm/internal/mpi/table"
)

// Use is called before anything else. The functions that MPI allows at any time work from then on.
func Use(f Face) { face = f }

// Init joins the job and makes the predefined handles (MPI_Init).
func Init() error {
	c, err := comm.Init(forever)
	if err != nil {
		return err
	}
	world.p2p = c
	c.SetName("MPI_COMM_WORLD")
	me, err := c.Group().Incl(c.Rank())
	if err == nil {
		self.p2p, err = c.CreateGroup(forever, me, 0)
	}
	if err != nil {
		return err
	}
	predefine()
	environment.first = face.Alloc(len(environment.values) * 4)
	environment.values = [...]int32{tagUB, anySource, procNull, 1, 0, 0, int32(c.Size())}
	environment.values[keyHost-keyTagUB] = int32(face.ProcNull)
	environment.values[keyIO-keyTagUB] = int32(c.Rank())
	return nil
}

func predefine() {
	communicators.set(table.CommWorld, world)
	communicators.set(table.CommSelf, self)
	groups.set(table.GroupEmpty, emptyGroup)
	for _, h := range []*Errhandler{errorsAreFatal, errorsAbort, errorsReturn, errorsThrow} {
		errhandlers.set(h.handle, h)
	}
	requests.set(table.RequestDone, requestDone)
	messages.set(table.MessageNoProc, messageNoProc)
	infos.set(table.InfoEnv, &Info{handle: table.InfoEnv, pairs: environmentInfo()})
	predefineTypes()
	predefineOperators()
}

func predefineTypes() {
	for t := range datatype.All() {
		b := t.Basic()
		datatypes.set(Handle(b.ID), &Datatype{Type: t, handle: Handle(b.ID), name: b.Name, committed: true})
	}
}

// environmentInfo is what MPI_INFO_ENV says.
func environmentInfo() []infoPair {
	return append(startInfo(), infoPair{"maxprocs", fmt.Sprint(world.p2p.Size())}, infoPair{"host", world.p2p.Host(world.p2p.Rank())})
}

// InfoCreateEnv says what is known before Init.
func InfoCreateEnv(argc int, argv Array) (*Info, error) {
	return newInfo(&Info{pairs: startInfo()}), nil
}

func startInfo() []infoPair {
	pairs := []infoPair{{"thread_level", "MPI_THREAD_MULTIPLE"}}
	if exe, err := os.Executable(); err == nil {
		pairs = append(pairs, infoPair{"command", exe})
	}
	if dir, err := os.Getwd(); err == nil {
		pairs = append(pairs, infoPair{"wdir", dir})
	}
	return pairs
}

// leaveTime is how long Finalize waits for what is under way when all ranks have called it.
const leaveTime = 10 * time.Second

// Finalize leaves the job (MPI_Finalize): when all ranks have called it.
func Finalize() error {
	if err := self.deleteAttributes(&self.mu, kindComm, self.handle); err != nil {
		return err
	}
	if err := world.p2p.Barrier(forever); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(forever, leaveTime)
	defer cancel()
	communicators.each(func(c *Comm) { c.closeNow(ctx) })
	closing.wait(ctx)
	_ = self.p2p.Close(ctx)
	return world.p2p.Close(ctx)
}

// Unsupported is the error of a function that is not implemented.
func Unsupported(name string) Class {
	return world.raise(name, wrong(errUnsupported, "not implemented by gompi"))
}

// Length returns how long an array of a communicator's is: what is 0 for one entry for each peer, 1
// for each source of its topology and 2 for each destination.
func Length(what int, h Handle) int {
	c := communicators.find(h)
	switch {
	case c == nil:
		return 0
	case what == 0:
		return c.peers()
	}
	in, out := c.neighbors()
	if what == 1 {
		return len(in)
	}
	return len(out)
}

func Abort(c *Comm, code int) error {
	if err := world.p2p.Abort(code, fmt.Sprintf("MPI_Abort(%s, %d)", c.nameOrNone(), code)); err != nil {
		return err
	}
	face.Flush()
	face.Exit(code)
	return nil
}

func (c *Comm) nameOrNone() string {
	if c == nil {
		return "a communicator that is not valid"
	}
	return c.Name()
}

func GetProcessorName(name Text) (int, error) {
	return name.set(world.p2p.Host(world.p2p.Rank()), face.MaxProcessorName), nil
}

func AllocMem(n int, info *Info) (Addr, error) {
	if n < 0 {
		return 0, wrong(errArg, "the size is %d: want 0 or more", n)
	}
	at := face.Alloc(max(n, 1))
	if at == 0 {
		return 0, wrong(errNoMem, "there are no %d bytes", n)
	}
	return at, nil
}

func FreeMem(at Addr) error {
	face.Free(at)
	return nil
}

func GetAddress(at Addr) (int, error) { return int(at), nil }
func Address(at Addr) (int, error)    { return int(at), nil }

// End is Finalize for a face: it returns the class of the error.
func End() Class {
	if err := Finalize(); err != nil {
		return world.raise("MPI_Finalize", err)
	}
	return 0
}
