package message_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gompi/internal/core/liveness"
	"gompi/internal/core/message"
	"gompi/internal/core/payload"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// A device is a memtest.Device whose copies a test can hold up, fail and count.
type device struct {
	*memtest.Device
	before func(i int, out bool) error // called before the i-th copy out of the device, or into it

	mu      sync.Mutex
	in, out int
}

func newDevice() *device { return &device{Device: memtest.NewDevice("gpu")} }

func (d *device) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	b, err := d.Device.Alloc(t, n)
	return mem.Device(d, b.Addr(), t, n), err
}

func (d *device) Copy(dst, src mem.Buffer) error {
	if err := d.count(dst.IsHost()); err != nil {
		return err
	}
	return d.Device.Copy(d.inside(dst), d.inside(src))
}

func (d *device) count(out bool) error {
	d.mu.Lock()
	n := &d.in
	if out {
		n = &d.out
	}
	i := *n
	*n++
	d.mu.Unlock()
	if d.before == nil {
		return nil
	}
	return d.before(i, out)
}

// copies returns how many copies into the device and out of it have begun.
func (d *device) copies() (in, out int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.in, d.out
}

// inside returns b as the memtest.Device knows it.
func (d *device) inside(b mem.Buffer) mem.Buffer {
	if b.IsHost() {
		return b
	}
	return mem.Device(d.Device, b.Addr(), mem.U8, b.Size())
}

// with returns b's bytes in d, in host memory if d is nil.
func (d *device) with(b []byte) mem.Buffer {
	if d == nil {
		return mem.Bytes(bytes.Clone(b))
	}
	on, err := d.Alloc(mem.U8, len(b))
	if err == nil {
		err = d.Device.Copy(d.inside(on), mem.Bytes(b))
	}
	if err != nil {
		panic(err)
	}
	return on
}

// content returns what b has.
func content(b mem.Buffer) []byte {
	got := make([]byte, b.Size())
	from := b
	if d, ok := b.Space().(*device); ok {
		from = d.inside(b)
	}
	if err := mem.Copy(mem.Bytes(got), from); err != nil {
		panic(err)
	}
	return got
}

// failing returns a device whose at-th copy fails, if fails is true.
func failing(fails bool, at int) *device {
	d := newDevice()
	d.before = func(i int, _ bool) error {
		if fails && i == at {
			return errors.New("it burns")
		}
		return nil
	}
	return d
}

// hasFailed reports whether err names the failure of a device: of this rank's own, or of another
// rank's, which has broken the communicator.
func hasFailed(err error, own bool) bool {
	return err != nil && strings.Contains(err.Error(), "it burns") && errors.Is(err, liveness.ErrRevoked) != own
}

// heldUp returns a device whose fourth copy waits for gate, if holds is true. None may begin when
// over is true.
func heldUp(holds bool, over *bool) (d *device, gate chan struct{}) {
	d, gate = newDevice(), make(chan struct{})
	d.before = func(i int, _ bool) error {
		if *over {
			return errors.New("a copy after the end")
		}
		if holds && i == 3 {
			<-gate
		}
		return nil
	}
	return d, gate
}

// A purse lends chunks and knows how many were lent at a time.
type purse struct {
	before func() // called before it lends, if not nil

	mu         sync.Mutex
	lent, most int
}

func (p *purse) Lend(s mem.Space, n int) (mem.Buffer, error) {
	if p.before != nil {
		p.before()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent++
	p.most = max(p.most, p.lent)
	return mem.Host.Alloc(mem.U8, n)
}

func (p *purse) Return(mem.Space, mem.Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent--
}

// onDevices is run with a purse for each rank, all of whose chunks come back.
func onDevices(t *testing.T, n int, fn func(ctx context.Context, e *message.Engine, ch *message.Channel,
	p *purse) error) {
	t.Helper()
	purses := make([]purse, n)
	runConfig(t, n, func(cfg *message.Config) { cfg.Lender = &purses[cfg.Rank] },
		func(ctx context.Context, e *message.Engine, ch *message.Channel) error {
			return fn(ctx, e, ch, &purses[ch.Rank()])
		})
	for r := range purses {
		if purses[r].lent != 0 {
			t.Errorf("rank %d: %d chunks are still lent", r, purses[r].lent)
		}
	}
}

const chunk = payload.StagingChunk

// A message from a device, or to one, is as any other: of every length, whatever the
// other side has, and whether or not it is expected; and little is lent for it.
func TestMessagesOfDevices(t *testing.T) {
	for _, size := range []int{0, 1, 1000, chunk - 1, chunk, chunk + 1, 9*chunk + 5, 20 * chunk} {
		for _, from := range []*device{nil, newDevice()} {
			for _, to := range []*device{nil, newDevice()} {
				for _, late := range []bool{false, true} {
					onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, p *purse) error {
						if ch.Rank() == 0 {
							h := ch.Isend(1, 5, from.with(pattern(size, 3)), true)
							return errors.Join(ch.Send(ctx, 1, 6, mem.Buffer{}, false), wait(ctx, e, h))
						}
						if late {
							if _, _, err := ch.Probe(ctx, 0, 6, true, false); err != nil {
								return err
							}
						}
						b := to.with(make([]byte, size+chunk))
						st, err := ch.Recv(ctx, message.Any, 5, b)
						if err == nil && (st.Bytes != size || !bytes.Equal(content(b)[:size], pattern(size, 3))) {
							err = fmt.Errorf("%d bytes, %v to %v: %d bytes or wrong ones", size, from != nil,
								to != nil, st.Bytes)
						}
						if p.most > 8 {
							err = fmt.Errorf("%d bytes: %d chunks are lent", size, p.most)
						}
						_, end := ch.Recv(ctx, 0, 6, mem.Buffer{})
						return errors.Join(err, end)
					})
				}
			}
		}
	}
}

// A short message that nobody asked for gets to a device, too, wherever it was kept.
func TestEagerMessagesToDevices(t *testing.T) {
	for _, size := range []int{0, 1, 1000, message.DefaultEager} {
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			d := newDevice()
			for i := range 3 {
				if ch.Rank() == 0 {
					if err := ch.Send(ctx, 1, i, mem.Bytes(pattern(size, i)), false); err != nil {
						return err
					}
					continue
				}
				b := d.with(make([]byte, 3*chunk))
				var st message.Status
				m, _, err := ch.Probe(ctx, 0, i, i > 0, i > 0)
				if m.Found() && i > 0 {
					st, err = m.Claim(ctx, b)
				} else if err == nil {
					st, err = ch.Recv(ctx, 0, i, b)
				}
				if err != nil || st.Bytes != size || !bytes.Equal(content(b)[:size], pattern(size, i)) {
					return fmt.Errorf("message %d of %d bytes: %v, or wrong bytes", i, size, err)
				}
			}
			return nil
		})
	}
}

func TestDevicesSendToThemselves(t *testing.T) {
	d, other := newDevice(), newDevice()
	for _, to := range []*device{nil, d, other} {
		onDevices(t, 1, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			const size = 3*chunk + 7
			b := to.with(make([]byte, size))
			s, r := ch.Isend(0, 1, d.with(pattern(size, 1)), false), ch.Irecv(0, 1, b)
			if err := errors.Join(wait(ctx, e, r), wait(ctx, e, s)); err != nil {
				return err
			}
			if !bytes.Equal(content(b), pattern(size, 1)) {
				return errors.New("wrong bytes")
			}
			return nil
		})
	}
}

// What does not fit is dropped, what fits is stored, and the sender does not notice.
func TestDevicesGetTheBeginningOfATruncatedMessage(t *testing.T) {
	for _, from := range []*device{nil, newDevice()} {
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			const size, fits = 30 * chunk, 9*chunk + 100
			if ch.Rank() == 0 {
				return errors.Join(ch.Send(ctx, 1, 0, from.with(pattern(size, 3)), false),
					ch.Send(ctx, 1, 1, mem.Buffer{}, false))
			}
			b := newDevice().with(make([]byte, fits))
			st, err := ch.Recv(ctx, 0, 0, b)
			if !errors.Is(err, message.ErrTruncated) || st.Bytes != size {
				return fmt.Errorf("got %v, %d bytes: want ErrTruncated, %d", err, st.Bytes, size)
			}
			if !bytes.Equal(content(b), pattern(size, 3)[:fits]) {
				return errors.New("the beginning is not there")
			}
			_, err = ch.Recv(ctx, 0, 1, mem.Buffer{})
			return err
		})
	}
}

// While a device dawdles over one copy, other chunks are on their way, as many as there
// is memory for, and other messages pass.
func TestCopiesOfDevicesOverlapTheirMessage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   int // the copy out of the sender's device that is held up, -1 for none
		to     int // the same, into the receiver's
		loaded int // copies that have begun by then
		stored int
	}{
		{"the first is being stored", -1, 0, 16, 1},
		{"the fifth is being stored", -1, 4, 20, 5},
		{"the fifth is being loaded", 4, -1, 5, 4},
	} {
		const size = 40 * chunk
		out, in := newDevice(), newDevice()
		goOn := make(chan chan struct{}, 1)
		hold := func(n int) func(i int, _ bool) error {
			return func(i int, _ bool) error {
				if i == n {
					<-<-goOn
				}
				return nil
			}
		}
		out.before, in.before = hold(tt.from), hold(tt.to)
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			if ch.Rank() == 0 {
				h := ch.Isend(1, 0, out.with(pattern(size, 1)), false)
				got := make([]byte, 4)
				_, err := ch.Sendrecv(ctx, 1, 7, mem.Bytes(pattern(4, 1)), 1, 7, mem.Bytes(got))
				return errors.Join(err, wait(ctx, e, h))
			}
			b, gate := in.with(make([]byte, size)), make(chan struct{})
			goOn <- gate
			h := ch.Irecv(0, 0, b)
			time.Sleep(2 * time.Millisecond) // for a receive without a message nothing polls at once
			synctest.Wait()
			if _, loaded := out.copies(); loaded != tt.loaded {
				return fmt.Errorf("%s: %d chunks were loaded, want %d", tt.name, loaded, tt.loaded)
			}
			if stored, _ := in.copies(); stored != tt.stored {
				return fmt.Errorf("%s: %d chunks were stored, want %d", tt.name, stored, tt.stored)
			}
			got := make([]byte, 4)
			if _, err := ch.Sendrecv(ctx, 0, 7, mem.Bytes(pattern(4, 1)), 0, 7, mem.Bytes(got)); err != nil {
				return err
			}
			close(gate)
			if err := wait(ctx, e, h); err != nil {
				return err
			}
			if !bytes.Equal(content(b), pattern(size, 1)) {
				return errors.New("wrong bytes")
			}
			return nil
		})
	}
}

// However many messages are under way, the chunks lent are bounded, and all get through.
func TestManyMessagesOfDevicesShareTheirChunks(t *testing.T) {
	onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, p *purse) error {
		const n, size = 12, 8*chunk + 1
		d := newDevice()
		var hs []message.Handle
		var in []mem.Buffer
		for i := range n {
			in = append(in, d.with(make([]byte, size)))
			hs = append(hs, ch.Irecv(1-ch.Rank(), i, in[i]), ch.Isend(1-ch.Rank(), i, d.with(pattern(size, i)), false))
		}
		for _, h := range hs {
			if err := wait(ctx, e, h); err != nil {
				return err
			}
		}
		for i := range n {
			if !bytes.Equal(content(in[i]), pattern(size, i)) {
				return fmt.Errorf("message %d: wrong bytes", i)
			}
		}
		if most := 64 + 2*n; p.most > most {
			return fmt.Errorf("%d chunks were lent at a time: want %d at most", p.most, most)
		}
		return nil
	})
}

// A device that fails ends the message on both sides, with its words.
func TestDevicesThatFailBreakTheChannel(t *testing.T) {
	for _, side := range []int{0, 1} {
		for _, at := range []int{0, 5, 19} {
			onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
				b := failing(ch.Rank() == side, at).with(make([]byte, 20*chunk))
				var err error
				if ch.Rank() == 0 {
					err = ch.Send(ctx, 1, 0, b, false)
				} else {
					_, err = ch.Recv(ctx, 0, 0, b)
				}
				if ch.Rank() == 0 && side == 1 && err == nil { // all had left
					_, err = ch.Recv(ctx, 1, 0, mem.Buffer{})
				}
				if !hasFailed(err, ch.Rank() == side) {
					return fmt.Errorf("copy %d on rank %d: rank %d got %v", at, side, ch.Rank(), err)
				}
				return nil
			})
		}
	}
}

// A message that is given up ends when the copy has that is being made, and no copy
// begins after that.
func TestMessagesOfDevicesCanBeGivenUp(t *testing.T) {
	for _, side := range []int{0, 1} {
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			me, over := ch.Rank(), false
			d, gate := heldUp(me == side, &over)
			b := d.with(make([]byte, 20*chunk))
			mine, cancel := context.WithCancel(ctx)
			defer cancel()
			returned := make(chan error, 1)
			go func() {
				var err error
				if me == 0 {
					err = ch.Send(mine, 1, 0, b, false)
				} else {
					_, err = ch.Recv(mine, 0, 0, b)
				}
				over = true
				returned <- err
			}()
			if me == side {
				synctest.Wait()
				cancel()
				time.Sleep(time.Minute) // the copy stands still
				synctest.Wait()
				inUse := len(returned) == 0
				close(gate)
				if err := <-returned; !errors.Is(err, context.Canceled) || !inUse {
					return fmt.Errorf("rank %d gave up: %v; its memory was in use: %v", side, err, inUse)
				}
				return nil
			}
			if err := <-returned; !errors.Is(err, liveness.ErrRevoked) {
				return fmt.Errorf("rank %d gave up, rank %d got %v", side, me, err)
			}
			return nil
		})
	}
}

// A Channel that breaks while pinned memory is waited for ends the message, too.
func TestMessagesOfDevicesEndBeforeTheyHaveChunks(t *testing.T) {
	gates := make(chan chan struct{}, 1)
	onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, p *purse) error {
		b := newDevice().with(make([]byte, 4*chunk))
		if ch.Rank() == 0 {
			ch.Isend(1, 0, b, false)
			gate := make(chan struct{})
			gates <- gate
			synctest.Wait()
			ch.Break("it is enough")
			synctest.Wait()
			close(gate)
			return nil
		}
		gate := <-gates
		p.before = func() { <-gate }
		if _, err := ch.Recv(ctx, 0, 0, b); !errors.Is(err, liveness.ErrRevoked) {
			return fmt.Errorf("got %v, want ErrRevoked", err)
		}
		return nil
	})
}

// A peer that leaves in the midst of a message ends it.
func TestMessagesOfDevicesEndWithTheirPeer(t *testing.T) {
	for _, leaver := range []int{0, 1} {
		onDevices(t, 2, func(ctx context.Context, e *message.Engine, ch *message.Channel, _ *purse) error {
			d, gate := heldUp(ch.Rank() == leaver, new(bool))
			b := d.with(make([]byte, 40*chunk))
			var h message.Handle
			if ch.Rank() == 0 {
				h = ch.Isend(1, 0, b, false)
			} else {
				h = ch.Irecv(0, 0, b)
			}
			if ch.Rank() == leaver {
				synctest.Wait()
				close(gate)
				return nil // closes the channel
			}
			if err := wait(ctx, e, h); !errors.Is(err, liveness.ErrLeft) {
				return fmt.Errorf("rank %d left, rank %d got %v", leaver, ch.Rank(), err)
			}
			return nil
		})
	}
}
