package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gompi/comm"
	"gompi/cudaops"
	"gompi/internal/mem"
)

// A stuck device has calls that block, which tells them apart from the rest of a rank.
type stuck struct {
	*cudaops.Device
	copies   func() // is called before a Copy, unless it is nil
	freeHost func() // the same of FreeHost
}

func (s *stuck) Alloc(t comm.Type, n int) (comm.Buffer, error) {
	b, err := s.Device.Alloc(t, n)
	return mem.Device(s, b.Addr(), t, b.Len()), err
}

func (s *stuck) Free(b comm.Buffer) { s.Device.Free(s.inside(b)) }

func (s *stuck) Copy(dst, src comm.Buffer) error {
	if s.copies != nil {
		s.copies()
	}
	return s.Device.Copy(s.inside(dst), s.inside(src))
}

func (s *stuck) FreeHost(b comm.Buffer) error {
	if s.freeHost != nil {
		s.freeHost()
	}
	return s.Device.FreeHost(b)
}

func (s *stuck) inside(b comm.Buffer) comm.Buffer { return (&meter{Device: s.Device}).inside(b) }

// A device that hangs in a collective holds up that collective, and Close until its context
// ends, but not for longer.
func TestCloseGivesUpOnACollectiveWhoseDeviceHangs(t *testing.T) {
	d := leakyDevices(t)[0]
	err := errors.Join(overMemoryWith(t, 2, comm.Config{Logger: quietly.Logger, Tuning: inChunksFrom},
		func(ctx context.Context, world *comm.Comm) error {
			c, err := world.Dup(ctx)
			if err != nil {
				return err
			}
			const n = 100_000
			hangs, goesOn := make(chan struct{}), make(chan struct{})
			first := sync.OnceFunc(func() {
				close(hangs)
				<-goesOn
			})
			s := &stuck{Device: d, copies: first}
			b, err := s.Alloc(mem.F32, n)
			if err != nil {
				return err
			}
			defer s.Free(b)
			done := make(chan error, 1)
			go func() { done <- c.Allreduce(ctx, b, b, comm.Sum) }()
			select {
			case <-hangs:
			case err := <-done:
				return fmt.Errorf("allreduce: %v, and nothing was copied", err)
			}
			// else the other may hear that this one has left, and copy nothing
			if err := comm.Barrier(ctx, world); err != nil {
				return err
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			closed := make(chan error, 1)
			go func() { closed <- c.Close(ended) }()
			late := time.NewTimer(10 * time.Second)
			defer late.Stop()
			select {
			case <-closed:
			case <-late.C:
				err = errors.New("close has not returned after its context's end")
			}
			close(goesOn)
			if failed := <-done; !errors.Is(failed, comm.ErrClosed) && !errors.Is(failed, comm.ErrRevoked) {
				err = errors.Join(err, fmt.Errorf("allreduce: got %v", failed))
			}
			return errors.Join(err, comm.Barrier(ctx, world))
		})...)
	if err != nil {
		t.Error(err)
	}
}

// A device may look at its rank while it takes memory back.
func TestDevicesTakeMemoryBackWithNoLockHeld(t *testing.T) {
	d := leakyDevices(t)[0]
	err := errors.Join(overTCP(t, 2, func(ctx context.Context, c *comm.Comm) error {
		asked := make(chan int, 100)
		s := &stuck{Device: d, freeHost: func() { asked <- inside(c).Staged() }}
		b, err := s.Alloc(mem.F32, 10)
		if err != nil {
			return err
		}
		defer s.Free(b)
		if err := c.Allreduce(ctx, b, b, comm.Sum); err != nil {
			return err
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close(ctx) }()
		select {
		case err = <-closed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if len(asked) == 0 {
			err = errors.Join(err, errors.New("no memory was taken back"))
		}
		return err
	})...)
	if err != nil {
		t.Error(err)
	}
}
