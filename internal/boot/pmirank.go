package boot

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/rank0"
	"gompi/internal/env"
)

const contactKey = "gompi-rank0"

// openPMI joins the job of a PMI-1 launcher: hydra's mpiexec, srun --mpi=pmi2, Flux and others.
// gompi uses little of PMI: rank 0 puts its contact, all ranks meet in one barrier, and the rest
// goes over rank 0's server.
func openPMI(ctx context.Context) (Boot, error) {
	l, err := pmi.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, l.Interrupt)
	b, err := meetOver(ctx, l)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return b, nil
}

// meetOver meets the other ranks.
func meetOver(ctx context.Context, l *pmi.Launcher) (Boot, error) {
	if err := l.Init(); err != nil {
		return nil, err
	}
	if l.Size == 1 {
		return Alone(), l.Finalize()
	}
	s, err := connectOver(ctx, l)
	if err != nil {
		return nil, err
	}
	s.info.Program = l.Program
	leave := s.leave
	s.leave = func() error { leave(); return l.Finalize() }
	s.abort = l.Abort
	return s, nil
}

// connectOver connects to the server of rank 0, which rank 0 starts.
func connectOver(ctx context.Context, l *pmi.Launcher) (*client, error) {
	if l.Rank == 0 {
		local := os.Getenv(env.PMILocalSize) == strconv.Itoa(l.Size)
		ln, err := listen(local)
		if err != nil {
			return nil, err
		}
		_, secret := NewJob()
		return lead(ctx, l.Size, secret, ln, func() error {
			if err := l.Put(contactKey, rank0.ContactOf(ln, secret, local).String()); err != nil {
				return err
			}
			return l.Barrier()
		}, func() {})
	}
	if err := l.Barrier(); err != nil {
		return nil, err
	}
	value, err := l.Get(contactKey)
	if err != nil {
		return nil, fmt.Errorf("rank 0 has left no way to reach it: is it a program of gompi, too? %w", err)
	}
	t, err := rank0.ParseContact(value)
	if err != nil {
		return nil, err
	}
	at, err := t.Endpoints()
	if err != nil {
		return nil, err
	}
	return follow(ctx, l.Rank, func(context.Context) ([32]byte, [][]string, error) { return t.Secret, at, nil })
}
