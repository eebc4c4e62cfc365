package mpi

import (
	"fmt"
	"sync"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/attrs"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
	"gompi/mpi/internal/infos"
)

// job is this process's part in the job, which it joins once, in the first of MPI_Init and
// MPI_Session_init. The process leaves when MPI was finalized and no session is open, or, without
// MPI_Init, at its end: until then it may open another session.
var job part

type part struct {
	mu           sync.Mutex
	joined, left bool
	open         int  // MPI, between MPI_Init and MPI_Finalize, and sessions
	finalized    bool // MPI_Finalize was called
}

// enter is called when MPI or a session begins, and blocks until all ranks have joined.
func (p *part) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return errs.New(errs.Other, "the job was left in MPI_Finalize: want a session that is opened before")
	}
	if !p.joined {
		if err := join(); err != nil {
			return err
		}
		p.joined = true
	}
	p.open++
	return nil
}

func join() error {
	if err := abi.C.Alone(); err != nil {
		return err
	}
	if err := comms.Join(); err != nil {
		return err
	}
	c := comms.World.P2P
	attrs.SetEnvironment(c.Size(), c.Program(), c.OneClock())
	infos.SetEnvironment(append(startInfo(), "maxprocs", fmt.Sprint(c.Size()), "host", hostName())...)
	return nil
}

// end is called when MPI, if finalize, or a session ends. If this leaves the job, end blocks
// until all ranks leave.
func (p *part) end(finalize bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.finalized = p.finalized || finalize
	if !p.finalized {
		return nil
	}
	return p.leave()
}

// leave leaves the job if nothing is open.
func (p *part) leave() error {
	if !p.joined || p.left || p.open > 0 {
		return nil
	}
	p.left = true
	return comms.Leave()
}

// Running reports whether functions of MPI may be called: MPI or a session has begun and not ended.
func Running() bool {
	job.mu.Lock()
	defer job.mu.Unlock()
	return job.open > 0
}

// Exit is called when the process ends by itself, without an error. Exit leaves the job if the
// process is still in it.
func Exit() {
	job.mu.Lock()
	defer job.mu.Unlock()
	if err := job.leave(); err != nil {
		comms.CannotLeave(err)
		comms.Unattached.Raise("MPI_Session_finalize", err)
	}
}

// SessionInit grants MPI_THREAD_MULTIPLE for every request, and ignores other hints.
func SessionInit(info *infos.Info, h *errs.Errhandler) (*comms.Session, error) {
	if err := h.Check(errs.KindSession); err != nil {
		return nil, err
	}
	if err := job.enter(); err != nil {
		return nil, err
	}
	return comms.NewSession(h), nil
}

// SessionFinalize does not free the objects of the session: they are freed at the end of the job.
func SessionFinalize(h *abi.Handle) error {
	if err := comms.RemoveSession(h); err != nil {
		return err
	}
	err := job.end(false)
	if err != nil {
		comms.CannotLeave(err)
	}
	return err
}
