package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// parcel is what rank from sends to rank to, as bytes: of another length for each pair.
func parcel(from, to, scale int) []byte {
	b := make([]byte, 8*((from*7+to*3)%5*scale+(from+to)%2))
	for i := range b {
		b[i] = byte(from*31 + to*17 + i)
	}
	return b
}

// bufferOf returns b as elements of a type that differs from pair to pair.
func bufferOf(b []byte, kind int) comm.Buffer {
	like := comm.Of(b)
	switch kind % 3 {
	case 1:
		like = comm.Of(make([]float64, len(b)/8))
	case 2:
		like = comm.Of(make([]int16, len(b)/2))
	}
	copy(like.HostSlice(), b)
	return like
}

// exchangeParcels has all ranks exchange parcels, in one of the forms of the collective.
func exchangeParcels(ctx context.Context, c *comm.Comm, form, scale int, inPlace bool) error {
	p, me := c.Size(), c.Rank()
	send, recv := make([]comm.Buffer, p), make([]comm.Buffer, p)
	for i := range p {
		out, in := parcel(me, i, scale), parcel(i, me, scale)
		if send[i] = bufferOf(out, me+i); inPlace && len(out) == len(in) {
			recv[i] = send[i]
			continue
		}
		recv[i] = bufferOf(make([]byte, len(in)), me+i)
	}
	err := alltoallw(ctx, c, form, send, recv)
	for i := range p {
		if got, want := recv[i].HostSlice(), parcel(i, me, scale); err == nil && string(got) != string(want) {
			err = fmt.Errorf("form %d, scale %d, in place %v: %d bytes from rank %d differ from what it sent", form,
				scale, inPlace, len(want), i)
		}
	}
	return err
}

// alltoallw makes the call in one of its forms.
func alltoallw(ctx context.Context, c *comm.Comm, form int, send, recv []comm.Buffer) (err error) {
	switch form {
	case 0:
		err = comm.Alltoallw(ctx, c, send, recv)
	case 1:
		err = c.Alltoallw(ctx, send, recv)
	case 2:
		_, err = c.Ialltoallw(send, recv).Wait(ctx)
	case 3:
		_, err = c.AlltoallwInit(send, recv).Start().Wait(ctx)
	}
	return err
}

func TestAlltoallwExchangesBuffersOfAnyTypeAndLength(t *testing.T) {
	all := func(ctx context.Context, c *comm.Comm) error {
		for form := range 4 {
			for _, scale := range []int{0, 1, 900, 9_000} { // up to 36 KiB and 288 KiB
				for _, inPlace := range []bool{false, true} {
					if err := exchangeParcels(ctx, c, form, scale, inPlace); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	for name, run := range tunedWays(4, "") {
		if err := errors.Join(run(t, all)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, p := range []int{1, 2, 7} {
		commtest.Run(t, p, all)
	}
}

// Buffers on devices are exchanged with buffers of the host.
func TestAlltoallwOfDeviceMemory(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		d := memtest.NewDevice("gpu")
		send, recv := make([]comm.Buffer, 3), make([]comm.Buffer, 3)
		for i := range 3 {
			kind := c.Rank() + i
			send[i], recv[i] = bufferOf(parcel(c.Rank(), i, 10), kind),
				bufferOf(make([]byte, len(parcel(i, c.Rank(), 10))), kind)
			for _, b := range []*comm.Buffer{&send[i], &recv[i]} {
				if (c.Rank()+i)%2 == 0 {
					there, err := d.Alloc(b.Type(), b.Len())
					if err == nil {
						err = d.Copy(there, *b)
					}
					if *b = there; err != nil {
						return err
					}
				}
			}
		}
		if err := c.Alltoallw(ctx, send, recv); err != nil {
			return err
		}
		for i, b := range recv {
			got := make([]byte, b.Size())
			if err := mem.Copy(comm.Of(got), b.Raw()); err != nil {
				return err
			}
			if want := parcel(i, c.Rank(), 10); string(got) != string(want) {
				return fmt.Errorf("%d bytes from rank %d differ from what it sent", len(want), i)
			}
		}
		return nil
	})
}

func TestAlltoallwOfDifferentLengthsIsAMismatch(t *testing.T) {
	for name, run := range tunedWays(2, "") {
		if name == "hosts" {
			continue // of two ranks on two hosts none shares memory: tcp has that
		}
		for _, err := range run(t, func(ctx context.Context, c *comm.Comm) error {
			n := 3 + c.Rank() // each expects as many as it sends
			b := func() comm.Buffer { return comm.Of(make([]byte, n)) }
			return c.Alltoallw(ctx, []comm.Buffer{b(), b()}, []comm.Buffer{b(), b()})
		}) {
			if !errors.Is(err, comm.ErrMismatch) {
				t.Errorf("%s: got %v, want ErrMismatch", name, err)
			}
		}
	}
}

// What one rank sends to another is of the type that this expects, or neither gets anything.
func TestAlltoallwOfDifferentTypesIsAMismatch(t *testing.T) {
	const p, odd = 4, 3
	for name, run := range tunedWays(p, "") {
		for form := range 4 {
			for _, n := range []int{1, 9_000, 50_000} { // the last is sent on request
				run(t, func(ctx context.Context, c *comm.Comm) error {
					send, recv := buffersFor(c, n)
					if c.Rank() == odd {
						send[0] = comm.Of(make([]int64, n))
					}
					err := alltoallw(ctx, c, form, send, recv)
					if err == nil {
						err = next(ctx, c)
					}
					want := fmt.Sprintf("rank 0 expected %d bytes of float64 from rank %d, which sends %d bytes of int64", 8*n, odd, 8*n)
					if problem := wrongMismatch(err, odd, "alltoallw"); problem != nil ||
						!strings.Contains(err.Error(), want) {
						t.Errorf("%s, form %d, %d elements: rank %d: got %v, want %q", name, form, n,
							c.Rank(), err, want)
					}
					return nil
				})
			}
		}
	}
}

// buffersFor returns what a rank sends to and receives from each rank.
func buffersFor(c *comm.Comm, n int) (send, recv []comm.Buffer) {
	for range c.Size() {
		send, recv = append(send, comm.Of(make([]float64, n))), append(recv, comm.Of(make([]float64, n)))
	}
	return send, recv
}

// An empty buffer is of any type, and of no type.
func TestAlltoallwOfNothingComparesNoTypes(t *testing.T) {
	for name, run := range tunedWays(4, "") {
		if err := errors.Join(run(t, func(ctx context.Context, c *comm.Comm) error {
			send, recv := buffersFor(c, 1)
			one, other := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
			send[one], recv[other] = comm.Of([]int16{}), comm.Buffer{}
			return c.Alltoallw(ctx, send, recv)
		})...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rank that is late hears first that others wait to send it something long.
func TestALateRankOfAnAlltoallwTakesLongBuffers(t *testing.T) {
	inBubble(t, 3, func(ctx context.Context, c *comm.Comm) error {
		send, recv := buffersFor(c, 100_000)
		if c.Rank() == 0 {
			time.Sleep(10 * time.Second) // of the bubble's clock
		}
		return c.Alltoallw(ctx, send, recv)
	})
}

func TestAlltoallwRefusesWrongArguments(t *testing.T) {
	one, two := comm.Of(make([]byte, 1)), comm.Of(make([]byte, 2))
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		for want, lists := range map[string][2][]comm.Buffer{
			"2 buffers to send and 1 to receive: want 1":             {{one, one}, {one}},
			"recv[rank] has 2 bytes of uint8: want 1 bytes of uint8": {{one}, {two}},
			"recv[rank] has 1 bytes of int8: want 1 bytes of uint8":  {{one}, {comm.Of(make([]int8, 1))}},
			"send[0] and recv[0] overlap":                            {{two}, {two.Slice(0, 1)}},
		} {
			err := c.Alltoallw(ctx, lists[0], lists[1])
			if !errors.Is(err, comm.ErrArgument) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %v, want %q", err, want)
			}
		}
		return nil
	})
}
