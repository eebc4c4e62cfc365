package core_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"gompi/comm"
	"gompi/internal/boot"
	"gompi/internal/core"
	"gompi/internal/poll"
	"gompi/transport/ucx"
)

// asUCX returns what GOMPI_TRANSPORT is to say: UCX over this machine's RDMA devices, or else
// its own tcp on loopback. It skips a test where there is no UCX.
func asUCX(t testing.TB) string {
	set, err := poll.New(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for _, transports := range []string{"", "tcp"} {
		var tr *ucx.Transport
		if tr, err = ucx.New(ucx.Config{Size: 1, Transports: transports}, nil, set); err == nil {
			tr.Close(true)
			return strings.TrimSuffix("ucx:"+transports, ":")
		}
	}
	t.Skipf("left out: %v", err)
	return ""
}

// overUCX runs fn on goroutine ranks, each on a host of its own.
func overUCX(t testing.TB, n int, fn rankFunc) []error {
	t.Setenv("GOMPI_TRANSPORT", asUCX(t))
	return overTCP(t, n, fn)
}

func TestCollectivesOverUCXAgreeWithTheReference(t *testing.T) {
	asUCX(t)
	collectivesAgree(t, overUCX)
}

// Memory that Go or Alloc gives back and that is used anew, with registrations of old pages if UCX
// had any, holds what was sent. COMM_TEST_ROUNDS says how often to try.
func TestMemoryUsedAnewOverUCXHoldsWhatWasSent(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("COMM_TEST_ROUNDS"), "100"))
	if err != nil {
		t.Fatal(err)
	}
	const each = 100 // rounds of a job, which ends in time
	for first := 0; first < rounds && !t.Failed(); first += each {
		errs := overUCX(t, 2, func(ctx context.Context, c *comm.Comm) error {
			for round := first; round < min(first+each, rounds); round++ {
				if err := usedAnew(ctx, c, round); err != nil {
					return fmt.Errorf("round %d of %d: %w", round, rounds, err)
				}
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
}

// usedAnew exchanges messages between new memory of Go and of Alloc, each to each.
func usedAnew(ctx context.Context, c *comm.Comm, round int) error {
	n := 12_000 + 6000*(round%7)
	lent, err := comm.Alloc[int64](ctx, c, 2*n)
	if err != nil {
		return err
	}
	peer := 1 - c.Rank()
	for kind := range 4 {
		src, dst := lent[:n], lent[n:]
		if kind&1 != 0 {
			src = make([]int64, n)
		}
		if kind&2 != 0 {
			dst = make([]int64, n)
		}
		value := func(rank, i int) int64 { return int64(round)<<32 | int64(kind)<<30 | int64(rank)<<28 | int64(i) }
		for i := range src {
			src[i] = value(c.Rank(), i)
		}
		if _, err := comm.Sendrecv(ctx, c, peer, kind, src, peer, kind, dst); err != nil {
			return err
		}
		for i, got := range dst {
			if want := value(peer, i); got != want {
				return fmt.Errorf("kind %d: element %d of %d is %#x, want %#x", kind, i, n, got, want)
			}
		}
	}
	if c.Rank() == 0 {
		debug.FreeOSMemory()
	}
	return comm.Free(ctx, c, lent)
}

// A lines is a log that several ranks write to.
type lines struct {
	sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

func (l *lines) count(part string) int {
	l.Lock()
	defer l.Unlock()
	return strings.Count(l.String(), part)
}

// meetOver has two ranks do a barrier and a bcast of 24 bytes, each with the transport it asks for,
// and returns what they log.
func meetOver(t *testing.T, transports ...string) *lines {
	log := new(lines)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	errs := make([]error, len(transports))
	var all sync.WaitGroup
	for rank, b := range boot.Group(len(transports)) {
		all.Go(func() {
			cfg := comm.Config{Transport: transports[rank], Logger: logger}
			f, err := core.Connect(core.Config(cfg), b)
			if err != nil {
				errs[rank] = err
				return
			}
			c, err := joinBy(t.Context(), cfg, f)
			if err == nil {
				err = errors.Join(comm.Barrier(t.Context(), c), comm.Bcast(t.Context(), c, 0, make([]int64, 3)),
					leave(context.WithoutCancel(t.Context()), c))
			}
			errs[rank] = err
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return log
}

// Memory of another rank is accessed by UCX once messages have connected the two.
func TestMemoryOfARankOverUCXIsReached(t *testing.T) {
	const n = 300_000
	errs := overUCX(t, 2, func(ctx context.Context, c *comm.Comm) error {
		mine, err := c.AllocLocal(comm.TypeOf[byte](), n)
		if err != nil {
			return err
		}
		base, d := uintptr(unsafe.Pointer(unsafe.SliceData(mine.HostSlice()))), inside(c)
		key := d.Key(base, n)
		bases, lengths := make([]uint64, 2), make([]int64, 2)
		if err := errors.Join(comm.Allgather(ctx, c, []uint64{uint64(base)}, bases),
			comm.Allgather(ctx, c, []int64{int64(len(key))}, lengths)); err != nil {
			return err
		}
		keys := make([]byte, 2*len(key))
		if len(key) == 0 || lengths[0] != lengths[1] {
			return fmt.Errorf("keys of %v bytes: want some, and as many on both", lengths)
		}
		if err := comm.Allgather(ctx, c, key, keys); err != nil || c.Rank() == 1 {
			return errors.Join(err, c.Barrier(ctx))
		}
		m := d.Remote(1, keys[len(key):])
		if !m.Reached() {
			return errors.New("the memory of a rank that has sent messages is not reached")
		}
		want, got := bytes.Repeat([]byte("gompi"), n/5), make([]byte, n)
		for at := 0; at < n; {
			k, err := m.Write(uintptr(bases[1])+uintptr(at), want[at:])
			if err != nil {
				return err
			}
			at += k
			d.Progress(false)
		}
		flush, _, err := m.Flush()
		if err := errors.Join(err, comm.WaitAll(ctx, comm.Request(d.Promised(flush)))); err != nil {
			return err
		}
		for at := 0; at < n; {
			k, read, err := m.Read(uintptr(bases[1])+uintptr(at), got[at:])
			if err := errors.Join(err, comm.WaitAll(ctx, comm.Request(d.Promised(read)))); err != nil {
				return err
			}
			at += k
		}
		if m.Close(); !bytes.Equal(got, want) {
			return errors.New("what was written is not what is read")
		}
		return c.Barrier(ctx)
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Ranks use UCX if all have it; if one has not, none does, and one line says which and why.
func TestRanksAgreeOnUCX(t *testing.T) {
	asked := asUCX(t)
	const connected, without = "msg=connected part=ucx", "no RDMA: all ranks use TCP"
	both := meetOver(t, asked, asked)
	if both.count(connected) != 2 || both.count(without) != 0 {
		t.Errorf("both have it, and say:\n%s", both)
	}
	if both.count("msg=used part=ucx") != 2 || both.count("msg=carried") != 2 ||
		both.count("rank=0 transport=ucx messages=") != 1 || both.count("bytes=24") != 1 {
		t.Errorf("they do not say over which devices UCX has carried how much:\n%s", both)
	}
	if log := meetOver(t, asked, "tcp"); log.count(connected) != 0 || log.count(without) != 1 ||
		log.count("rank=1") == 0 || log.count("GOMPI_TRANSPORT is tcp there") != 1 {
		t.Errorf("rank 1 has not, and they say:\n%s", log)
	}
	if log := meetOver(t, "tcp", asked); log.count(connected) != 0 || log.count(without) != 1 ||
		log.count("rank=0") == 0 {
		t.Errorf("rank 0 has not, and they say:\n%s", log)
	}
	if log := meetOver(t, "", ""); log.count(connected) != 0 || log.count(without) != 0 {
		t.Errorf("it is not asked for on a single host, and they say:\n%s", log)
	}
}

// Without UCX or without a device a job that asks for it uses TCP, and says so.
func TestWithoutUCXThereIsTCP(t *testing.T) {
	t.Setenv("UCX_TLS", "tcp") // which New refuses, wherever this runs
	if log := meetOver(t, "ucx", "ucx"); log.count("no RDMA: all ranks use TCP") != 1 || log.count("part=ucx") != 0 {
		t.Errorf("the ranks say:\n%s", log)
	}
}
