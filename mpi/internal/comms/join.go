package comms

import (
	"context"
	"time"

	"gompi/internal/core"
	"gompi/internal/core/call"
	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/errs"
)

// Join joins the job, and makes the communicators of MPI_Init.
func Join() error {
	c, err := core.Init(Forever, core.Config{}, &core.MPI{Names: nameOf, Count: abi.C.Count})
	if err != nil {
		return err
	}
	World.P2P = c
	c.SetName("MPI_COMM_WORLD")
	me, err := c.Group().Incl(c.Rank())
	if err == nil {
		self.P2P, err = c.CreateGroup(Forever, me, 0)
	}
	return err
}

// Begin makes MPI_COMM_WORLD and MPI_COMM_SELF valid, from MPI_Init on.
func Begin() {
	Registry.Set(abi.CommWorld, World)
	Registry.Set(abi.CommSelf, self)
}

// End makes them invalid again, in MPI_Finalize.
func End() error {
	if err := self.DeleteAttributes(attrs.KindComm, self.Handle); err != nil {
		return err
	}
	freeing.Lock()
	defer freeing.Unlock()
	unlend(World)
	Registry.Remove(abi.CommWorld)
	Registry.Remove(abi.CommSelf)
	return nil
}

// leaveTime bounds the wait of leave for operations under way after all ranks have called leave.
const leaveTime = 10 * time.Second

// Leave leaves the job after all living ranks have called Leave.
func Leave() error {
	if err := World.P2P.Do(In("MPI_Finalize"), new(call.Call).Barrier()); err != nil {
		if !ofBroken(err) {
			return err
		}
		if _, _, e := World.P2P.AgreeOn(Forever, nil); e != nil { // the job ends
			return err
		}
	}
	ctx, cancel := context.WithTimeout(Forever, leaveTime)
	defer cancel()
	Registry.Each(func(c *Comm) {
		if !c.unused() { // else closing has it
			c.closeNow(ctx)
		}
	})
	owned.Range(func(d, _ any) bool {
		_ = d.(*core.Comm).Close(ctx)
		return true
	})
	closing.closeNow(ctx)
	if ctx.Err() != nil {
		return errs.New(errs.Other, "communicators were not closed within %v: want nothing under way on them", leaveTime)
	}
	_ = self.P2P.Close(ctx)
	if err := World.P2P.Close(ctx); !ofBroken(err) {
		return err
	}
	return nil
}

// CannotLeave makes the launcher report why this rank has not left the job, if it ends well.
func CannotLeave(err error) {
	if World.P2P != nil {
		World.P2P.CannotLeave(errs.ClassName(errs.ClassOf(err)) + ": " + errs.Explain(err))
	}
}

// ofBroken reports whether err is of a communicator that has lost a member or was revoked.
func ofBroken(err error) bool {
	class := errs.ClassOf(err)
	return class == errs.ProcFailed || class == errs.Revoked
}
