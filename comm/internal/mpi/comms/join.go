package comms

import (
	"context"
	"time"

	"gompi/comm"
	"gompi/comm/internal/call"
	"gompi/comm/internal/door"
	"gompi/comm/internal/mpi/attrs"
	"gompi/comm/internal/mpi/errs"
	"gompi/comm/internal/mpi/table"
)

// Join joins the job, and makes the communicators of MPI_Init.
func Join() error {
	joined, err := door.InitMPI(Forever, nameOf)
	if err != nil {
		return err
	}
	c := joined.(*comm.Comm)
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
	Registry.Set(table.CommWorld, World)
	Registry.Set(table.CommSelf, self)
}

// End makes them invalid again, in MPI_Finalize.
func End() error {
	if err := self.DeleteAttributes(attrs.KindComm, self.Handle); err != nil {
		return err
	}
	freeing.Lock()
	defer freeing.Unlock()
	unlend(World)
	Registry.Remove(table.CommWorld)
	Registry.Remove(table.CommSelf)
	return nil
}

// leaveTime is how long leave waits for what is under way when all ranks have called it.
const leaveTime = 10 * time.Second

// Leave leaves the job when all ranks that live have called it.
func Leave() error {
	o := new(call.Call).Barrier()
	o.Fingerprint.Digest = errs.OfFinalize
	if err := World.Door().Do(Forever, o); err != nil {
		if !ofBroken(err) {
			return err
		}
		if _, _, e := World.Door().AgreeOn(Forever, nil); e != nil { // the job ends
			return err
		}
	}
	ctx, cancel := context.WithTimeout(Forever, leaveTime)
	defer cancel()
	Registry.Each(func(c *Comm) { c.closeNow(ctx) })
	owned.Range(func(d, _ any) bool {
		_ = d.(*comm.Comm).Close(ctx)
		return true
	})
	closing.wait(ctx)
	_ = self.P2P.Close(ctx)
	if err := World.P2P.Close(ctx); !ofBroken(err) {
		return err
	}
	return nil
}

// ofBroken reports whether err is of a communicator that has lost a member or was revoked.
func ofBroken(err error) bool {
	class := errs.ClassOf(err)
	return class == errs.ProcFailed || class == errs.Revoked
}
