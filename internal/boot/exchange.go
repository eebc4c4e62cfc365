package boot

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"gompi/internal/boot/pmi"
	"gompi/internal/boot/pmix"
	"gompi/internal/boot/rank0"
	"gompi/internal/env"
)

const contactKey = "gompi-rank0"

// An exchange is a launcher that passes values between ranks. gompi uses little of it: rank 0 puts
// its contact, all ranks meet in one barrier, and the rest goes over rank 0's server.
type exchange interface {
	Put(key, value string) error
	Barrier() error
	Get(key string) (string, error)
	Abort(code int, reason string) error
	Finalize() error
}

// openPMI joins the job of a PMI-1 launcher: hydra's mpiexec, srun --mpi=pmi2, Flux and others.
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
	local := os.Getenv(env.PMILocalSize) == strconv.Itoa(l.Size)
	return connectOver(ctx, l, &place{rank: l.Rank, size: l.Size, program: l.Program, local: local})
}

// openPMIx joins the job of a launcher that speaks PMIx. p is the place by other variables of the
// launcher, nil if it sets none.
func openPMIx(ctx context.Context, p *place) (Boot, error) {
	rank, job := os.Getenv(pmix.EnvRank), os.Getenv(pmix.EnvJob)
	limited, cancel := context.WithTimeoutCause(ctx, meetTime, fmt.Errorf("the ranks have not met within %v", meetTime))
	defer cancel()
	var b Boot
	done := make(chan error, 2)
	go func() { // calls of PMIx's library do not end with a context
		l, err := pmix.Init()
		switch {
		case err != nil:
			err = fmt.Errorf("%w; otherwise start it so: %s, or set %s=alone to run it as a job of one rank", err,
				p.startLines("N"), env.Boot)
		case p != nil && l.Size != p.size:
			err = p.refusal() // a process of that rank has started this one
		default:
			b, err = connectOver(limited, l, &place{rank: l.Rank, size: l.Size, program: l.Program,
				local: l.LocalSize == l.Size})
		}
		if err != nil && l != nil {
			l.Finalize() // else the launcher reports a rank that has left without a goodbye
		}
		done <- err
	}()
	context.AfterFunc(limited, func() { // a call of the library may hold the goodbye up
		time.AfterFunc(time.Second, func() { done <- context.Cause(limited) })
	})
	err := <-done
	if err == nil {
		return b, nil
	}
	return nil, fmt.Errorf("started as rank %s of %s by a launcher that speaks PMIx (%s and %s are set): %w", rank, job,
		pmix.EnvRank, pmix.EnvJob, err)
}

// connectOver connects to the server of rank 0, which rank 0 starts.
func connectOver(ctx context.Context, l exchange, p *place) (Boot, error) {
	if p.size == 1 {
		return Alone(), l.Finalize()
	}
	s, err := reachOver(ctx, l, p)
	if err != nil {
		return nil, err
	}
	s.info.Program = p.program
	leave := s.leave
	s.leave = func() error { leave(); return l.Finalize() }
	s.abort = l.Abort
	return s, nil
}

func reachOver(ctx context.Context, l exchange, p *place) (*client, error) {
	if p.rank == 0 {
		ln, err := listen(p.local)
		if err != nil {
			return nil, err
		}
		_, secret := NewJob()
		return lead(ctx, p.size, secret, ln, func() error {
			if err := l.Put(contactKey, rank0.ContactOf(ln, secret, p.local).String()); err != nil {
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
	return follow(ctx, p.rank, func(context.Context) ([32]byte, [][]string, error) { return t.Secret, at, nil })
}
