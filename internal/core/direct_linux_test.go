package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core/network"
	"gompi/internal/stress"
	"gompi/internal/world"
	"gompi/transport"
)

// Messages from and to memory of Alloc, which are copied once.

// A tally counts the frames that arrive at ranks, by kind, and calls hook for each.
type tally struct {
	of    [32]atomic.Int64
	hook  func(rank int, h *transport.Header)
	reads bool // ordinary memory is read where it lies
}

// tallied runs fn on n ranks of one host whose frames tl counts.
func (tl *tally) tallied(t *testing.T, n int, fn rankFunc) error {
	t.Helper()
	boots, s := withMemory(t, n)
	defer s.Close()
	for i := range s.Ranks() {
		if tl.reads {
			s.Rank(world.LocalRank(i)).Join() // it says which process the rank is
		}
	}
	return tl.over(t, boots, fn)
}

// over runs fn on ranks whose frames tl counts.
func (tl *tally) over(t *testing.T, boots []boot.Boot, fn rankFunc) error {
	t.Helper()
	cfg := comm.Config{}
	if tl.reads {
		cfg.Tuning = alwaysCrossed
	}
	return errors.Join(overFabrics(t, boots, cfg, func(rank int, f *network.Connection) {
		connect := f.Connect
		f.Connect = func(sink transport.Sink, handleEvents func()) ([]transport.Transport, error) {
			return connect(&tallySink{sink, sink.(transport.EagerSink), rank, tl}, handleEvents)
		}
	}, fn)...)
}

type tallySink struct {
	transport.Sink
	transport.EagerSink
	rank  int
	tally *tally
}

func (s *tallySink) Arrive(peer world.Rank, h *transport.Header) (comm.Buffer, uint64) {
	s.tally.of[h.Kind].Add(1)
	if s.tally.hook != nil {
		s.tally.hook(s.rank, h)
	}
	return s.Sink.Arrive(peer, h)
}

// ways to exchange messages between two ranks: each gets the other's send in recv.
var waysToExchange = map[string]func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error{
	"send": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		if c.Rank() < peer {
			return errors.Join(comm.Send(ctx, c, peer, 1, send), second(comm.Recv(ctx, c, peer, 1, recv)))
		}
		return errors.Join(second(comm.Recv(ctx, c, peer, 1, recv)), comm.Send(ctx, c, peer, 1, send))
	},
	"ssend": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		if c.Rank() < peer {
			return errors.Join(second(comm.Recv(ctx, c, comm.AnySource, comm.AnyTag, recv)),
				comm.Ssend(ctx, c, peer, 1, send))
		}
		return errors.Join(comm.Ssend(ctx, c, peer, 1, send), second(comm.Recv(ctx, c, peer, 1, recv)))
	},
	"isend": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		return comm.WaitAll(ctx, comm.Irecv(c, peer, 1, recv), comm.Isend(c, peer, 1, send))
	},
	"sendrecv": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		return second(comm.Sendrecv(ctx, c, peer, 1, send, peer, 1, recv))
	},
	"persistent": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		s, r := c.SsendInit(peer, 1, comm.Of(send)), c.RecvInit(peer, 1, comm.Of(recv))
		return comm.WaitAll(ctx, s.Start(), r.Start())
	},
	"mprobe": func(ctx context.Context, c *comm.Comm, peer int, send, recv []byte) error {
		s := comm.Isend(c, peer, 1, send)
		m, err := c.Mprobe(ctx, peer, comm.AnyTag)
		if err != nil {
			return err
		}
		return errors.Join(second(m.Recv(ctx, comm.Of(recv))), second(s.Wait(ctx)))
	},
}

// Messages between memory of Alloc and other memory arrive whole, from anywhere to
// anywhere; where one side is from Alloc their payload does not travel.
func TestMessagesOfAllocatedMemoryAreCopiedInPlace(t *testing.T) { copiedInPlace(t, false) }

// Where the kernel is to read ordinary memory, no payload travels.
func TestMessagesOfOrdinaryMemoryAreRead(t *testing.T) {
	needCrossing(t)
	copiedInPlace(t, true)
}

func copiedInPlace(t *testing.T, reads bool) {
	sizes := []int{64<<10 + 1, 300_001, 1 << 20, 9<<20 + 5}
	if testing.Short() {
		sizes = sizes[:3]
	}
	most := sizes[len(sizes)-1] + 64
	tl := tally{reads: reads}
	var direct, others atomic.Int64 // messages
	err := tl.tallied(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx) // another than the memory is from
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		heap, err := comm.Alloc[byte](ctx, c, 2*most)
		if err != nil {
			return err
		}
		private := make([]byte, 2*most)
		i := 0
		for _, name := range slices.Sorted(maps.Keys(waysToExchange)) { // in one order on both ranks
			for _, n := range sizes {
				for mix := range 4 {
					i++
					send, recv := private[i%37:][:n], private[most+i%5:][:n]
					if mix&1 != 0 {
						send = heap[i%41:][:n]
					}
					if mix&2 != 0 {
						recv = heap[most+i%7:][:n]
					}
					copy(send, content(c.Rank(), i, n))
					clear(recv)
					on, peer := []*comm.Comm{c, d}[i%2], 1-c.Rank()
					if err := waysToExchange[name](ctx, on, peer, send, recv); err != nil {
						return fmt.Errorf("%s of %d bytes, mixture %d: %w", name, n, mix, err)
					}
					if err := equal(fmt.Sprintf("%s of %d bytes, mixture %d", name, n, mix), recv,
						content(peer, i, n)); err != nil {
						return err
					}
					if mix != 0 || reads {
						direct.Add(1)
					} else {
						others.Add(1)
					}
				}
			}
		}
		return comm.Free(ctx, c, heap)
	})
	if err != nil {
		t.Fatal(err)
	}
	if done, data := tl.of[transport.Done].Load(), tl.of[transport.Data].Load(); done != direct.Load() ||
		data != others.Load() {
		t.Errorf("%d messages were copied in place and %d sent, want %d and %d", done, data, direct.Load(),
			others.Load())
	}
}

// The least messages go so when they wait for their receives, and a rank's to itself
// arrive.
func TestShortAndOwnMessagesOfAllocatedMemory(t *testing.T) {
	var tl tally
	err := tl.tallied(t, 2, func(ctx context.Context, c *comm.Comm) error {
		heap, err := comm.Alloc[byte](ctx, c, 1<<20)
		if err != nil {
			return err
		}
		for i, n := range []int{0, 1, 100, 400_000} {
			send, recv := heap[i:][:n], heap[500_000:][:n]
			for _, peer := range []int{1 - c.Rank(), c.Rank()} {
				copy(send, content(c.Rank(), i, n))
				clear(recv)
				if err := waysToExchange["persistent"](ctx, c, peer, send, recv); err != nil {
					return err
				}
				if err := equal("received", recv, content(peer, i, n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if done := tl.of[transport.Done].Load(); done != 2*3 {
		t.Errorf("%d messages were copied in place, want 6: all to the other rank but the empty ones", done)
	}
}

// Of a message that does not fit, or is of another type, nothing is stored that should
// not be.
func TestMessagesOfAllocatedMemoryThatDoNotFit(t *testing.T) {
	err := errors.Join(inRooms(t, 2, func(ctx context.Context, c *comm.Comm) error {
		const n = 300_000
		heap, err := comm.Alloc[int32](ctx, c, 2*n)
		if err != nil {
			return err
		}
		for i, mine := range [][]int32{heap, make([]int32, 2*n)} {
			if c.Rank() == 0 {
				for j := range mine[:n] {
					mine[j] = int32(i + j)
				}
				if err := errors.Join(comm.Send(ctx, c, 1, 0, mine[:n]),
					comm.Send(ctx, c, 1, 0, mine[:n])); err != nil {
					return err
				}
				continue
			}
			recv := heap[1:n] // one less than is sent
			clear(heap)
			if st, err := comm.Recv(ctx, c, 0, 0, recv); !errors.Is(err, comm.ErrTruncated) || st.Bytes != 4*n {
				return fmt.Errorf("%+v, %v: want %d bytes and ErrTruncated", st, err, 4*n)
			}
			if recv[n-2] != int32(i+n-2) || heap[n] != 0 {
				return fmt.Errorf("the last element is %d and what is behind it %d, want %d and 0", recv[n-2],
					heap[n], i+n-2)
			}
			clear(heap)
			floats := make([]float32, n)
			if _, err := comm.Recv(ctx, c, 0, 0, floats); !errors.Is(err, comm.ErrType) || floats[0] != 0 ||
				floats[n-1] != 0 {
				return fmt.Errorf("int32 received as float32: %v, and %v; want ErrType", err, floats[n-1])
			}
		}
		return c.Barrier(ctx) // who refuses a message and leaves does not wait for all of it
	})...)
	if err != nil {
		t.Error(err)
	}
}

// A rank whose communicator breaks takes back all its places; messages on others, which were
// announced with one, arrive all the same.
func TestMessagesArriveWhenTheirPlacesWereRecalled(t *testing.T) {
	const n = 400_000
	var tl tally
	err := tl.tallied(t, 2, func(ctx context.Context, c *comm.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		defer d.Close(ctx)
		heap, err := comm.Alloc[byte](ctx, c, n)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			copy(heap, content(0, 1, n))
			r := comm.Isend(c, 1, 1, heap)
			other := comm.Isend(d, 1, 1, heap)
			d.Revoke(errEnough.Error())
			if _, err := other.Wait(ctx); !errors.Is(err, comm.ErrRevoked) {
				return fmt.Errorf("a send on a communicator that is revoked: %v", err)
			}
			return second(r.Wait(ctx))
		}
		if _, err := comm.Recv(ctx, d, 0, 2, make([]byte, 1)); wrongCause(err, 0, errEnough.Error()) != nil {
			return wrongCause(err, 0)
		}
		recv := make([]byte, n)
		return errors.Join(second(comm.Recv(ctx, c, 0, 1, recv)), equal("received", recv, content(0, 1, n)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if done, data := tl.of[transport.Done].Load(), tl.of[transport.Data].Load(); done != 0 || data != 1 {
		t.Errorf("%d messages were copied in place and %d sent, want none and 1", done, data)
	}
}

// What a peer may still be writing to is not given back for others to have, until the peer
// answers; what others have in the meantime is.
func TestMemoryOfAReceiveThatWasGivenUpIsKept(t *testing.T) {
	stress.Slow(t, "it waits for deadlines")
	const n, later = 400_000, 5
	for _, answers := range []bool{false, true} {
		asked, goOn := make(chan bool), make(chan bool)
		tl := tally{hook: func(rank int, h *transport.Header) {
			switch {
			case rank == 0 && h.Kind == transport.CTS: // it stands still before it writes
				close(asked)
				<-goOn
			case h.Kind == transport.Flush && !answers:
				h.Kind, h.A = transport.Credit, 0 // nothing
			}
		}}
		err := tl.tallied(t, 2, func(ctx context.Context, c *comm.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			defer d.Close(ctx)
			heap, err := comm.Alloc[byte](ctx, c, n)
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				if err = comm.Send(ctx, d, 1, 1, make([]byte, n)); err == nil { // it had left when the news came
					_, err = comm.Recv(ctx, d, 1, 1, make([]byte, 1))
				}
				err = wrongCause(err, 1, errEnough.Error())
			} else {
				err = giveUpRecv(ctx, d, heap, asked)
				close(goOn)
			}
			if err = errors.Join(err, comm.Free(ctx, c, heap)); err != nil {
				return err
			}
			for range later {
				if err := allocAndFree(ctx, c, n); err != nil {
					return err
				}
			}
			if c.Rank() == 1 && !answers {
				if inside(c).Lent() != 1 {
					err = fmt.Errorf("rank 1 keeps %d allocations, want the one that rank 0 may write to",
						inside(c).Lent())
				}
				return errors.Join(err, c.Barrier(ctx)) // before which rank 0 does not leave
			}
			for inside(c).Lent() > 0 {
				if err := context.Cause(ctx); err != nil {
					return fmt.Errorf("rank %d keeps %d allocations: %w", c.Rank(), inside(c).Lent(), err)
				}
				c.Iprobe(comm.AnySource, comm.AnyTag) // hears the answer
			}
			return c.Barrier(ctx)
		})
		if err != nil {
			t.Fatalf("the peer answers: %v: %v", answers, err)
		}
	}
}

// giveUpRecv receives what rank 0 is asked for, and then gives it up.
func giveUpRecv(ctx context.Context, d *comm.Comm, b []byte, asked <-chan bool) error {
	short, cancel := context.WithCancelCause(ctx)
	go func() {
		<-asked
		cancel(errEnough)
	}()
	if _, err := comm.Recv(short, d, 0, 1, b); !errors.Is(err, errEnough) {
		return fmt.Errorf("got %v, want %v", err, errEnough)
	}
	return nil
}

func allocAndFree(ctx context.Context, c *comm.Comm, n int) error {
	b, err := comm.Alloc[byte](ctx, c, n)
	if err != nil {
		return err
	}
	return comm.Free(ctx, c, b)
}

// Messages of all lengths from and to memory of all kinds, in windows, both ways at once,
// by ranks that stop wherever chance has it.
func TestStressMessagesOfAllocatedMemory(t *testing.T) {
	end := stress.Until(t)
	for seed := uint64(0); seed == 0 || time.Now().Before(end); seed++ {
		for _, p := range []int{2, 3} {
			err := errors.Join(inRooms(t, p, func(ctx context.Context, c *comm.Comm) error {
				return windows(ctx, c, seed)
			})...)
			if err != nil {
				t.Fatalf("%d ranks, seed %d: %v", p, seed, err)
			}
		}
	}
}

// windows exchanges windows of messages with all other ranks.
func windows(ctx context.Context, c *comm.Comm, seed uint64) error {
	const rounds, window, most = 20, 4, 400_000
	peers := c.Size() - 1
	heap, err := comm.Alloc[byte](ctx, c, 2*peers*window*most)
	if err != nil {
		return err
	}
	private := make([]byte, len(heap))
	rng := rand.New(rand.NewPCG(seed, uint64(3000+c.Rank())))
	for round := range rounds {
		var open []comm.Request
		var got, want [][]byte
		at := 0
		place := func(n int) []byte {
			at += most
			if rng.IntN(3) == 0 {
				return private[at-most:][:n]
			}
			return heap[at-most+rng.IntN(64):][:n]
		}
		for k := range window {
			for i := range peers {
				peer := (c.Rank() + 1 + i) % c.Size()
				number := round*window + k
				lengthOf := func(from, to int) int { return (number*31_337 + from*77_777 + to*5555) % (most - 64) }
				stress.Pause(rng)
				recv := place(lengthOf(peer, c.Rank()))
				open = append(open, comm.Irecv(c, peer, k, recv))
				got, want = append(got, recv), append(want, content(peer, number, len(recv)))
				stress.Pause(rng)
				send := place(lengthOf(c.Rank(), peer))
				copy(send, content(c.Rank(), number, len(send)))
				open = append(open, comm.Isend(c, peer, k, send))
			}
		}
		if err := comm.WaitAll(ctx, open...); err != nil {
			return err
		}
		for i := range got {
			if err := equal(fmt.Sprintf("round %d, message %d", round, i), got[i], want[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ranks bear it that one stands still, and are told when one dies, in the midst of
// messages from and to memory of Alloc as in collectives.
func TestStressOfRanksKilledInMessagesOfAllocatedMemory(t *testing.T) {
	gompirun := buildGompirun(t)
	end := stress.Until(t)
	for again := true; again; again = stress.Asked() && time.Now().Before(end) {
		var all []disaster
		for _, p := range []int{2, 4} {
			for i, way := range []string{"heap", "sent", "received", "tcp", "crossed"} {
				for j, n := range []int{100_000, 3_000_000} {
					if !stress.Asked() && j != (i+p/4)%2 { // every way with either length, by so many ranks or others
						continue
					}
					all = append(all, disaster{messages, n, p, way, i % p})
				}
			}
		}
		for _, d := range stress.Some(t, 2, all) {
			t.Run(d.String(), func(t *testing.T) { d.underGompirun(t, gompirun) })
		}
	}
}

// messages is what ranks of a disaster do that send each other messages.
const messages = "messages"

// circulate sends a window of messages to the next rank and receives one from that
// before. way says which sides are in the heap: none of those by way of tcp, and of those that are
// crossed, copied from process to process.
func circulate(ctx context.Context, c *comm.Comm, way string, n int, turned func(i int)) error {
	const window = 3
	memory := make([]byte, 2*window*n)
	send, recv := memory[:window*n], memory[window*n:]
	if way != "tcp" && way != "crossed" {
		heap, err := comm.Alloc[byte](ctx, c, len(memory))
		if err != nil {
			return err
		}
		if way != "received" {
			send = heap[:window*n]
		}
		if way != "sent" {
			recv = heap[window*n:]
		}
	}
	next, last := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for i := 0; ; i++ {
		for k := range window {
			send[k*n], send[(k+1)*n-1] = byte(i), byte(i+k)
		}
		var open []comm.Request
		for k := range window {
			open = append(open, comm.Irecv(c, last, k, recv[k*n:][:n]), comm.Isend(c, next, k, send[k*n:][:n]))
		}
		if err := comm.WaitAll(ctx, open...); err != nil {
			return err
		}
		for k := range window {
			if first, end := recv[k*n], recv[(k+1)*n-1]; first != byte(i) || end != byte(i+k) {
				return fmt.Errorf("message %d of round %d begins with %d and ends with %d, want %d and %d", k, i, first,
					end, byte(i), byte(i+k))
			}
		}
		turned(i)
	}
}
