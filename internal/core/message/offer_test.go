package message_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"gompi/internal/calls"
	"gompi/internal/core/call"
	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/round"
	"gompi/internal/mem"
)

// aCall is one whose count its ranks need not agree on.
var aCall = call.Fingerprint{Kind: calls.Alltoallv, Type: mem.U8}

// collective runs fn as one of ch's collectives.
func collective(ctx context.Context, ch *message.Channel, fn func(rd *round.Round) error) error {
	rd := round.Of(ch)
	if err := rd.Begin(ctx, &aCall, 0, false); err != nil {
		return err
	}
	return rd.End(fn(rd))
}

// roundSizes are those of short messages of collectives, and of long ones.
var roundSizes = []int{0, 1, 1000, 256 << 10, 256<<10 + 1, chunk, 9*chunk + 5}

// Messages of collectives are from devices and to them, several between two ranks, and
// several at a time, with little memory lent.
func TestCollectivesSendAndReceiveMemoryOfDevices(t *testing.T) {
	for _, from := range []*device{nil, newDevice()} {
		for _, to := range []*device{nil, newDevice()} {
			onDevices(t, 3, func(ctx context.Context, e *message.Engine, ch *message.Channel, p *purse) error {
				me := ch.Rank()
				return collective(ctx, ch, func(rd *round.Round) error {
					var in []mem.Buffer
					for o := range 3 {
						for _, n := range roundSizes {
							in = append(in, to.with(make([]byte, n)))
							if o != me {
								rd.Irecv(o, in[len(in)-1])
								rd.Isend(o, from.with(pattern(n, me)))
							}
						}
					}
					if err := rd.Wait(); err != nil {
						return err
					}
					for i, b := range in {
						n, o := roundSizes[i%len(roundSizes)], i/len(roundSizes)
						if o != me && !bytes.Equal(content(b), pattern(n, o)) {
							return fmt.Errorf("%d bytes from rank %d, %v to %v: wrong bytes", n, o,
								from != nil, to != nil)
						}
					}
					if most := 2*3 + 2*2*(1+1+8); p.most > most {
						return fmt.Errorf("%d chunks were lent at a time: want %d at most", p.most, most)
					}
					return nil
				})
			})
		}
	}
}

// What a rank sends from a device and receives there has one place, also if the other
// rank has host memory. However slowly it is copied out, nothing is stored before.
func TestDevicesExchangeInPlace(t *testing.T) {
	for _, n := range roundSizes {
		for _, both := range []bool{false, true} {
			onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, p *purse) error {
				me, d, gate := ch.Rank(), newDevice(), make(chan struct{})
				d.before = func(i int, out bool) error {
					if out && i == 1 {
						<-gate
					}
					return nil
				}
				if me == 1 && !both {
					d = nil
				}
				b := d.with(pattern(n, me))
				out := b
				if d == nil {
					out = mem.Bytes(pattern(n, me))
				}
				if me == 0 {
					go func() {
						synctest.Wait() // both have done all they can
						if in, _ := d.copies(); in > 1 {
							t.Errorf("%d bytes: %d chunks were stored before the second was loaded", n, in)
						}
						close(gate)
					}()
				} else {
					close(gate)
				}
				return collective(ctx, ch, func(rd *round.Round) error {
					rd.Isend(1-me, out)
					rd.Irecv(1-me, b)
					if err := rd.Wait(); err != nil {
						return err
					}
					if !bytes.Equal(content(b), pattern(n, 1-me)) {
						return fmt.Errorf("%d bytes: rank %d has wrong ones", n, me)
					}
					return nil
				})
			})
		}
	}
}

// Ranks that expect another length than is sent hear of it, whatever memory they have.
func TestCollectivesOfDevicesThatDisagreeEnd(t *testing.T) {
	const long = 3 * chunk
	for _, tt := range [][2]int{{long, long + 1}, {long + 1, long}, {long, 1000}, {long, 0}} {
		for _, from := range []*device{nil, newDevice()} {
			for _, to := range []*device{nil, newDevice()} {
				onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
					err := collective(ctx, ch, func(rd *round.Round) error {
						if ch.Rank() == 0 {
							rd.Isend(1, from.with(make([]byte, tt[0])))
						} else {
							rd.Irecv(0, to.with(make([]byte, tt[1])))
						}
						if err := rd.Wait(); err != nil || ch.Rank() == 1 {
							return err
						}
						rd.Irecv(1, mem.Bytes(make([]byte, 1)))
						return rd.Wait()
					})
					var mismatch *liveness.MismatchError
					if !errors.As(err, &mismatch) {
						return fmt.Errorf("%d bytes for %d: rank %d got %v", tt[0], tt[1], ch.Rank(), err)
					}
					return nil
				})
			}
		}
	}
}

// A device that fails in a collective ends it on both sides, with its words.
func TestDevicesThatFailBreakTheCollective(t *testing.T) {
	for _, n := range []int{1000, 20 * chunk} {
		for _, side := range []int{0, 1} {
			for _, at := range []int{0, 5, 19} {
				if n < chunk && at > 0 {
					continue
				}
				onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
					b := failing(ch.Rank() == side, at).with(make([]byte, n))
					err := collective(ctx, ch, func(rd *round.Round) error {
						if ch.Rank() == 0 {
							rd.Isend(1, b)
						} else {
							rd.Irecv(0, b)
						}
						err := rd.Wait()
						if ch.Rank() == 0 && side == 1 && err == nil { // all had left
							rd.Irecv(1, mem.Bytes(make([]byte, 1)))
							err = rd.Wait()
						}
						return err
					})
					if !hasFailed(err, ch.Rank() == side) {
						return fmt.Errorf("copy %d of %d bytes on rank %d: rank %d got %v", at, n, side, ch.Rank(), err)
					}
					return nil
				})
			}
		}
	}
}

// A collective that is given up, or that fails for its own reasons, ends when the copy
// has that is being made, and no copy begins after that.
func TestCollectivesOfDevicesCanBeGivenUp(t *testing.T) {
	own := errors.New("its own reasons")
	for _, side := range []int{0, 1} {
		for _, cause := range []error{context.Canceled, own} {
			onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
				me, fail, over := ch.Rank(), make(chan struct{}), false
				d, gate := heldUp(me == side, &over)
				b := d.with(make([]byte, 20*chunk))
				mine, cancel := context.WithCancel(ctx)
				defer cancel()
				returned := make(chan error, 1)
				go func() {
					err := collective(mine, ch, func(rd *round.Round) error {
						if me == 0 {
							rd.Isend(1, b)
						} else {
							rd.Irecv(0, b)
						}
						if me == side && cause == own {
							<-fail
							return own
						}
						return rd.Wait()
					})
					over = true
					returned <- err
				}()
				if me != side {
					if err := <-returned; !errors.Is(err, liveness.ErrRevoked) {
						return fmt.Errorf("rank %d gave up, rank %d got %v", side, me, err)
					}
					return nil
				}
				for in, out := d.copies(); in+out < 4; in, out = d.copies() {
					e.Advance(true)
					synctest.Wait()
				}
				if cause == own {
					close(fail)
				} else {
					cancel()
				}
				synctest.Wait()
				inUse := len(returned) == 0
				close(gate)
				if err := <-returned; !errors.Is(err, cause) || !inUse {
					return fmt.Errorf("rank %d gave up: %v; its memory was in use: %v", side, err, inUse)
				}
				return nil
			})
		}
	}
}

// A peer that leaves in the midst of a collective ends it.
func TestCollectivesOfDevicesEndWithTheirPeer(t *testing.T) {
	for _, leaver := range []int{0, 1} {
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			d, gate := heldUp(ch.Rank() == leaver, new(bool))
			b := d.with(make([]byte, 40*chunk))
			rd := round.Of(ch)
			if err := rd.Begin(ctx, &aCall, 0, false); err != nil {
				return err
			}
			if ch.Rank() == 0 {
				rd.Isend(1, b)
			} else {
				rd.Irecv(0, b)
			}
			if ch.Rank() == leaver {
				synctest.Wait()
				close(gate)
				return nil // closes the channel
			}
			if err := rd.End(rd.Wait()); !errors.Is(err, liveness.ErrRevoked) ||
				!strings.Contains(err.Error(), "has left") {
				return fmt.Errorf("rank %d left, rank %d got %v", leaver, ch.Rank(), err)
			}
			return nil
		})
	}
}
