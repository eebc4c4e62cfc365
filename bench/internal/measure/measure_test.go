package measure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/bench/internal/result"
	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/comm/ddp"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
)

// names are the operations that are tested.
var names = Names()

// run measures o on np goroutine ranks and returns the rows of rank 0.
func run(t *testing.T, np int, o Options) []result.Row {
	t.Helper()
	var mu sync.Mutex
	var rows []result.Row
	o.Check, o.Budget = true, time.Microsecond
	commtest.Run(t, np, func(ctx context.Context, c *comm.Comm) error {
		return Run(ctx, c, o, func(r result.Row) error {
			mu.Lock()
			defer mu.Unlock()
			if c.Rank() != 0 {
				return fmt.Errorf("rank %d emits a row", c.Rank())
			}
			rows = append(rows, r)
			return nil
		})
	})
	return rows
}

func TestEveryOperationDeliversWhatItShould(t *testing.T) {
	for _, np := range []int{2, 5} {
		for i := range 4 {
			inPlace, alloc := i%2 > 0, i/2 > 0
			t.Run(fmt.Sprintf("np=%d,inplace=%t,alloc=%t", np, inPlace, alloc), func(t *testing.T) {
				sizes := []int{0, 8, 4 * (period + 1)}
				o := Options{Ops: names, Sizes: sizes, Type: mem.F32, Redop: mem.Sum, InPlace: inPlace, Alloc: alloc}
				rows := run(t, np, o)
				if want := (len(names)-4)*len(sizes) + 4; len(rows) != want {
					t.Fatalf("%d rows, want %d: every size of every operation, and one of barrier, Iprobe and fetch_and_op", len(rows), want)
				}
				for _, r := range rows {
					if r.NP != np || r.Iters < leastIters || r.Median <= 0 || r.Min > r.Median || r.Median > r.P99 ||
						(r.B2B > 0) == strings.HasPrefix(r.Op, "gap") {
						t.Errorf("row %+v: want np %d, at least %d iterations and times in order", r, np, leastIters)
					}
				}
			})
		}
	}
}

// The vectors may be in memory that the processor cannot reach, and are freed.
func TestVectorsInDeviceMemory(t *testing.T) {
	gpu := memtest.NewDevice("gpu")
	o := Options{Ops: names, Sizes: []int{8, 4 * (period + 1)}, Type: mem.F32, Redop: mem.Sum, InPlace: true,
		Check: true, Space: gpu}
	if rows := run(t, 3, o); len(rows) != 2*(len(names)-4)+4 {
		t.Errorf("%d rows", len(rows))
	}
	if n := gpu.InUse(); n != 0 {
		t.Errorf("%d vectors are left in the device's memory", n)
	}
}

func TestEveryTypeAndOperatorPassesTheCheck(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		for typ := mem.I8; typ <= mem.Bool; typ++ {
			for op := mem.Sum; op <= mem.BXor; op++ {
				if !op.Defined(typ) {
					continue
				}
				if err := checkOnce(ctx, c, "reduce_scatter", typ, op, 2*period+1); err != nil {
					return fmt.Errorf("%v of %v: %w", op, typ, err)
				}
			}
		}
		return nil
	})
}

// checkOnce checks one call of the named operation with blocks of n elements.
func checkOnce(ctx context.Context, c *comm.Comm, name string, typ mem.Type, redop mem.Op, n int) error {
	op, err := find(name)
	if err != nil {
		return err
	}
	inputs, err := newPatterns(typ, redop, c.Size())
	if err != nil {
		return err
	}
	k := cell{ctx: ctx, c: c, op: op, rank: c.Rank(), np: c.Size(), redop: redop, inputs: inputs}
	if err := k.allocate(n); err != nil {
		return err
	}
	k.bind(n)
	k.prepare()
	return k.check()
}

func TestOneRankMeasuresCollectives(t *testing.T) {
	o := Options{Ops: []string{"barrier", "allreduce", "alltoall"}, Sizes: []int{64}, Type: mem.I32, Redop: mem.Max}
	for _, r := range run(t, 1, o) {
		if r.BusBW != 0 {
			t.Errorf("%s on one rank: bus bandwidth %v, want 0: nothing crosses a link", r.Op, r.BusBW)
		}
	}
}

func TestWrongResultsAreFoundOnEveryRank(t *testing.T) {
	commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
		op, err := find("allreduce")
		if err != nil {
			return err
		}
		op.run = func(k *cell) error {
			err := runAllreduce(k)
			if k.rank == 1 {
				k.recv.HostSlice()[4*period] ^= 1
			}
			return err
		}
		inputs, err := newPatterns(mem.F32, mem.Sum, c.Size())
		if err != nil {
			return err
		}
		k := cell{ctx: ctx, c: c, op: op, rank: c.Rank(), np: c.Size(), redop: mem.Sum, inputs: inputs}
		if err := k.allocate(2 * period); err != nil {
			return err
		}
		k.bind(2 * period)
		k.prepare()
		want := "another rank received wrong data"
		if c.Rank() == 1 {
			want = fmt.Sprintf("rank 1 received wrong data: element %d of block 0 of 1", period)
		}
		if err := k.check(); err == nil || err.Error() != want {
			return fmt.Errorf("rank %d: check: %v, want %q", c.Rank(), err, want)
		}
		return nil
	})
}

func TestAnErrorOfEmitEndsTheRun(t *testing.T) {
	broken := errors.New("nobody reads")
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		o := Options{Ops: []string{"barrier"}, Type: mem.F32, Redop: mem.Sum}
		err := Run(ctx, c, o, func(result.Row) error { return broken })
		if !errors.Is(err, broken) {
			return fmt.Errorf("got %v, want %v", err, broken)
		}
		return nil
	})
}

func TestValidate(t *testing.T) {
	good := Options{Ops: []string{"allreduce", "bw"}, Sizes: []int{8}, Type: mem.F32, Redop: mem.Sum}
	for _, tt := range []struct {
		name   string
		np     int
		change func(o *Options)
		want   string
	}{
		{"good", 2, func(*Options) {}, ""},
		{"no operation", 2, func(o *Options) { o.Ops = nil }, fmt.Sprintf("no operation: want some of %v", Names())},
		{"unknown", 2, func(o *Options) { o.Ops = []string{"allredcue"} },
			`operation "allredcue": want one of latency, irecv, vector, sendrecv, iprobe, iprobe_found, iprobe_recv, gap1ms, gap10ms, halo, bw, put, get, store, fetch_and_op, barrier, bcast, reduce, allreduce, iallreduce, allgather, reduce_scatter, alltoall, gather, scatter, scan, ddp-resnet18, ddp-resnet18-cifar10, ddp-resnet50, ddp-bert-base, ddp-recommender`},
		{"too few ranks", 1, func(*Options) {}, "bw with 1 rank: want at least 2"},
		{"odd size", 2, func(o *Options) { o.Sizes = []int{8, 6} },
			"size 6: want a multiple of the 4 bytes of float32"},
		{"operator", 2, func(o *Options) { o.Redop = mem.BAnd }, "operator band is not defined for float32"},
		{"operator that nobody needs", 2, func(o *Options) { o.Redop, o.Ops = mem.BAnd, []string{"bcast"} }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := good
			tt.change(&o)
			got := ""
			if err := o.Validate(tt.np); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWindowIsBoundedByBytesAndByMessages(t *testing.T) {
	for _, tt := range []struct{ bytes, want int }{
		{0, 64}, {8, 64}, {8 << 20, 64}, {16 << 20, 32}, {64 << 20, 8}, {256 << 20, 2}, {1 << 30, 2},
	} {
		if got := windowOf(tt.bytes); got != tt.want {
			t.Errorf("windowOf(%d) = %d, want %d", tt.bytes, got, tt.want)
		}
	}
}

func TestBatchesAddUpToTheBudget(t *testing.T) {
	const budget = 60 * time.Millisecond
	for _, tt := range []struct {
		name  string
		done  int
		spent time.Duration
		want  int
	}{
		{"budget spent", 5, budget, 0},
		{"half of it", 5, budget / 2, 5},
		{"a first batch that says little", 5, time.Microsecond, 5 * growth},
		{"so slow that not one more fits", 5, budget - time.Millisecond, 0},
		{"so fast that the memory for times bounds it", mostIters - 7, time.Millisecond, 7},
	} {
		if got := nextBatch(tt.done, tt.spent, budget); got != tt.want {
			t.Errorf("%s: nextBatch(%d, %v) = %d, want %d", tt.name, tt.done, tt.spent, got, tt.want)
		}
	}
}

func TestBandwidths(t *testing.T) {
	for _, tt := range []struct {
		op         string
		np, n      int
		usec       float64 // of a call
		median     float64
		alg, bus   float64
		wantBlocks [2]int // of rank 1
	}{
		// 4000 bytes of float32 in 4 us are 1 GB/s.
		{"latency", 2, 1000, 8, 4, 1, 1, [2]int{1, 1}},
		{"bw", 2, 1000, 64 * 4, 4, 1, 1, [2]int{0, 1}},
		{"irecv", 2, 1000, 8, 4, 1, 1, [2]int{1, 1}},
		{"vector", 2, 1000, 8, 4, 1, 1, [2]int{1, 1}},
		{"sendrecv", 2, 1000, 4, 4, 1, 1, [2]int{1, 1}},
		{"iprobe_recv", 2, 1000, 8, 4, 1, 1, [2]int{1, 1}},
		{"gap1ms", 2, 1000, 4, 4, 1, 1, [2]int{0, 1}},
		{"halo", 2, 1000, 4, 4, 1, 1, [2]int{1, 1}},
		{"put", 2, 1000, 4, 4, 1, 1, [2]int{0, 1}},
		{"get", 2, 1000, 4, 4, 1, 1, [2]int{1, 0}},
		{"store", 2, 1000, 4, 4, 1, 1, [2]int{0, 1}},
		{"bcast", 4, 1000, 4, 4, 1, 1, [2]int{0, 1}},
		{"reduce", 4, 1000, 4, 4, 1, 1, [2]int{1, 0}},
		{"allreduce", 4, 1000, 4, 4, 1, 1.5, [2]int{1, 1}},
		{"allgather", 4, 1000, 4, 4, 4, 3, [2]int{1, 4}},
		{"reduce_scatter", 4, 1000, 4, 4, 4, 3, [2]int{4, 1}},
		{"alltoall", 4, 1000, 4, 4, 4, 3, [2]int{4, 4}},
		{"gather", 4, 1000, 4, 4, 4, 3, [2]int{1, 0}},
		{"scatter", 4, 1000, 4, 4, 4, 3, [2]int{0, 1}},
		{"scan", 4, 1000, 4, 4, 1, 1, [2]int{1, 1}},
	} {
		op, err := find(tt.op)
		if err != nil {
			t.Fatal(err)
		}
		m := meter{cell: cell{op: op, np: tt.np, n: tt.n, window: windowOf(4 * tt.n)}, o: Options{Type: mem.F32}}
		r := m.row([]int64{int64(tt.usec * 1e3)}, 0)
		if r.Median != tt.median || r.AlgBW != tt.alg || r.BusBW != tt.bus {
			t.Errorf("%s: %v us, %v and %v GB/s; want %v, %v and %v", tt.op, r.Median, r.AlgBW, r.BusBW, tt.median,
				tt.alg, tt.bus)
		}
		send, recv := op.blocks(1, tt.np)
		if got := [2]int{send, recv}; got != tt.wantBlocks {
			t.Errorf("%s: rank 1 sends and receives %v blocks, want %v", tt.op, got, tt.wantBlocks)
		}
	}
}

func TestAWrongByteIsFoundWhereverItIs(t *testing.T) {
	inputs, err := newPatterns(mem.I16, mem.Sum, 2)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3*period + 5
	b, err := mem.Host.Alloc(mem.I16, n)
	if err != nil {
		t.Fatal(err)
	}
	tile(b, inputs.by[0])
	for _, phase := range []int{0, 1, period - 1, period, 2*period + 7} {
		p := part{b.Slice(phase, n), inputs.by[0], phase}
		if at := p.verify(); at != -1 {
			t.Errorf("from element %d: byte %d is called wrong, want none", phase, at)
		}
		if p.pattern = inputs.by[1]; p.verify() < 0 {
			t.Errorf("from element %d: another rank's input is not told apart", phase)
		}
	}
	for _, at := range []int{0, 2*period - 1, 2 * period, 2*n - 1} {
		b.HostSlice()[at] ^= 0x40
		if got := (part{b, inputs.by[0], 0}).verify(); got != at {
			t.Errorf("byte %d is wrong: found %d", at, got)
		}
		b.HostSlice()[at] ^= 0x40
	}
}

// A small model's gradients become their average, in host memory and in a device's.
func TestStepsOfTrainingAverageTheGradients(t *testing.T) {
	small := &Model{Name: "small", Lengths: []int{period + 1, 0, 3, 10000}}
	gpu := memtest.NewDevice("gpu")
	for _, tc := range []struct {
		typ mem.Type
		gpu bool
	}{{mem.F32, false}, {mem.F32, true}, {mem.BF16, true}} {
		commtest.Run(t, 3, func(ctx context.Context, c *comm.Comm) error {
			var q ddp.Stream
			if tc.gpu {
				own := gpu.OpenStream()
				defer own.Close()
				q = own
			}
			inputs, err := newPatterns(tc.typ, mem.Sum, 3)
			if err != nil {
				return err
			}
			op := trainingOperations()[0]
			op.model = small
			o := Options{Type: tc.typ, Check: true, Budget: time.Microsecond}
			m := meter{cell: cell{ctx: ctx, c: c, op: op, rank: c.Rank(), np: 3, inputs: inputs, stream: q}, o: o,
				budget: o.Budget}
			return m.all(func(r result.Row) error {
				if want := small.Size() * tc.typ.Size(); r.Bytes != want || r.Median <= 0 {
					return fmt.Errorf("row %+v, want %d bytes", r, want)
				}
				return nil
			})
		})
	}
	if n := gpu.InUse(); n != 0 {
		t.Errorf("%d gradients are left in the device's memory", n)
	}
	commtest.Run(t, 1, func(ctx context.Context, c *comm.Comm) error {
		_, err := newTraining(ctx, c, small, mem.F64, nil)
		if err == nil || err.Error() != "gradients of float64 in host memory: want float32" {
			return fmt.Errorf("float64 in host memory: %v", err)
		}
		return nil
	})
}
