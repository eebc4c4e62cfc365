package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gompi/comm"
	"gompi/comm/commtest"
	"gompi/internal/mem"
	"gompi/internal/mem/memtest"
	"gompi/internal/stress"
)

// must is for layouts that are right.
func must(l comm.Layout, err error) comm.Layout {
	if err != nil {
		panic(err)
	}
	return l
}

func lay[T comm.Scalar](s []T, l comm.Layout) comm.Buffer {
	b, err := comm.Lay(s, l)
	if err != nil {
		panic(err)
	}
	return b
}

func TestLayoutsNameTheElementsTheySay(t *testing.T) {
	for _, c := range []struct {
		what   string
		layout comm.Layout
		want   []int
	}{
		{"nothing", comm.Layout{}, nil},
		{"contiguous", must(comm.Contiguous(3)), []int{0, 1, 2}},
		{"contiguous of none", must(comm.Contiguous(0)), nil},
		{"vector", must(comm.Vector(3, 2, 5)), []int{0, 1, 5, 6, 10, 11}},
		{"vector without gaps", must(comm.Vector(2, 2, 2)), []int{0, 1, 2, 3}},
		{"vector that overlaps", must(comm.Vector(3, 2, 1)), []int{0, 1, 1, 2, 2, 3}},
		{"vector of one element", must(comm.Vector(3, 1, 0)), []int{0, 0, 0}},
		{"vector of no blocks", must(comm.Vector(0, 2, 5)), nil},
		{"subarray of a line", must(comm.Subarray([]int{7}, []int{3}, []int{2})), []int{2, 3, 4}},
		{"subarray of a matrix", must(comm.Subarray([]int{4, 5}, []int{2, 3}, []int{1, 2})),
			[]int{7, 8, 9, 12, 13, 14}},
		{"column", must(comm.Subarray([]int{3, 4}, []int{3, 1}, []int{0, 3})), []int{3, 7, 11}},
		{"face of a box", must(comm.Subarray([]int{2, 3, 2}, []int{2, 3, 1}, []int{0, 0, 1})),
			[]int{1, 3, 5, 7, 9, 11}},
		{"edge of a box", must(comm.Subarray([]int{3, 3, 3}, []int{3, 1, 1}, []int{0, 2, 1})), []int{7, 16, 25}},
		{"subarray of nothing", must(comm.Subarray([]int{3, 4}, []int{0, 2}, []int{3, 1})), nil},
		{"indexed", must(comm.Indexed([]int{2, 0, 1, 3}, []int{9, 1, 0, 4})), []int{9, 10, 0, 4, 5, 6}},
		{"indexed, twice", must(comm.Indexed([]int{2, 2}, []int{3, 2})), []int{3, 4, 2, 3}},
		{"indexed of nothing", must(comm.Indexed(nil, nil)), nil},
	} {
		data := make([]int32, 30)
		for i := range data {
			data[i] = int32(i)
		}
		extent := 0
		for _, i := range c.want {
			extent = max(extent, i+1)
		}
		b, err := comm.Lay(data, c.layout)
		if err != nil || c.layout.Len() != len(c.want) || c.layout.Extent() != extent || b.Len() != len(c.want) {
			t.Errorf("%s: %d elements up to %d, %v: want %v", c.what, c.layout.Len(), c.layout.Extent(), err, c.want)
			continue
		}
		got := make([]int32, b.Len())
		if err := mem.Copy(comm.Of(got), b); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if int(got[i]) != want {
				t.Errorf("%s: element %d is number %d of the slice, want %d", c.what, i, got[i], want)
			}
		}
	}
	if b := lay(make([]int, 9), must(comm.Subarray([]int{3, 3}, []int{2, 3}, []int{1, 0}))); !b.IsHost() {
		t.Error("rows of a matrix are not host memory in one run")
	}
}

func TestWrongLayouts(t *testing.T) {
	outside := func(l comm.Layout, err error) error {
		_, failed := comm.Lay(make([]byte, 10), l)
		return errors.Join(err, failed)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(comm.Contiguous(-1)), "contiguous layout: length -1: want 0 to 2^47"},
		{second(comm.Vector(-2, 1, 1)), "vector: count -2"},
		{second(comm.Vector(2, -3, 1)), "vector: block -3"},
		{second(comm.Vector(2, 1, -4)), "vector: stride -4: want 0"},
		{second(comm.Vector(1<<40, 1, 1<<40)), "vector of 1099511627776 blocks of 1 elements, 1099511627776 apart"},
		{second(comm.Subarray(nil, nil, nil)), "sizes [], subsizes [], starts []: want one number for each"},
		{second(comm.Subarray([]int{3, 4}, []int{1}, []int{0, 0})), "sizes [3 4], subsizes [1], starts [0 0]"},
		{second(comm.Subarray([]int{3, 4}, []int{2, 3}, []int{0, 2})),
			"dimension 1 has 3 elements from 2 on: want them inside its 4"},
		{second(comm.Subarray([]int{3, 4}, []int{2, 3}, []int{-1, 0})), "dimension 0 has 2 elements from -1 on"},
		{second(comm.Subarray([]int{1 << 40, 1 << 40}, []int{1, 1}, []int{0, 0})), "at most 2^47 elements"},
		{second(comm.Indexed([]int{1, 2}, []int{3})), "2 lengths and 1 starts: want the same number of both"},
		{second(comm.Indexed([]int{1, -2}, []int{3, 4})), "block 1 has -2 elements from 4 on"},
		{second(comm.Indexed([]int{1, 2}, []int{3, -4})), "block 1 has 2 elements from -4 on"},
		{second(comm.Indexed([]int{1 << 46, 1 << 46, 1 << 46}, []int{0, 0, 0})),
			"more than 2^47 elements up to block 2 of 3"},
		{outside(comm.Vector(3, 1, 5)), "ends at element 11 of a slice of 10: want it inside"},
		{outside(comm.Contiguous(11)), "ends at element 11 of a slice of 10"},
	} {
		if !errors.Is(c.err, comm.ErrArgument) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
}

// layoutOf returns a layout of n elements of a kind that r chooses. No element is named twice.
func layoutOf(r *rand.Rand, n int) comm.Layout {
	switch kind := r.IntN(4); {
	case n == 0 || kind == 0:
		return must(comm.Vector(n, 1, 2+r.IntN(3)))
	case kind == 1:
		block := 1 + r.IntN(3)
		for n%block != 0 {
			block--
		}
		return must(comm.Vector(n/block, block, block+1+r.IntN(4)))
	case kind == 2:
		cols := 1 + r.IntN(3)
		for n%cols != 0 {
			cols--
		}
		return must(comm.Subarray([]int{n/cols + 2, cols + 3}, []int{n / cols, cols}, []int{r.IntN(3), r.IntN(4)}))
	}
	var lengths, starts []int
	for at, left := 0, n; left > 0; {
		length := min(1+r.IntN(8), left)
		lengths, starts = append(lengths, length), append(starts, at)
		at, left = at+length+r.IntN(4), left-length
	}
	r.Shuffle(len(starts), func(i, j int) {
		lengths[i], lengths[j], starts[i], starts[j] = lengths[j], lengths[i], starts[j], starts[i]
	})
	return must(comm.Indexed(lengths, starts))
}

// A laidSpace is a Space for tests whose memory has layouts that r chooses.
type laidSpace struct {
	t      *testing.T
	r      *rand.Rand
	checks map[comm.Space]func()
	comm.Space
}

func newLaidSpace(t *testing.T, seed uint64) *laidSpace {
	return &laidSpace{t, rand.New(rand.NewPCG(seed, 2)), map[comm.Space]func(){}, mem.Host}
}

func (s *laidSpace) Alloc(_ comm.Type, n int) (comm.Buffer, error) {
	b, check := laid(s.t, s.r, n)
	s.checks[b.Space()] = check
	return b, nil
}

func (s *laidSpace) Copy(dst, src comm.Buffer) error { return mem.Copy(dst, src) }
func (s *laidSpace) Free(b comm.Buffer)              { s.checks[b.Space()]() }

// untouched is what lies between the elements of a layout.
const untouched = -12345

// laid returns n elements of zero in a new slice, and a function that checks what is between them.
func laid(t *testing.T, r *rand.Rand, n int) (b comm.Buffer, check func()) {
	l := layoutOf(r, n)
	data := make([]float32, l.Extent()+3)
	for i := range data {
		data[i] = untouched
	}
	b = lay(data, l)
	mem.Copy(b, comm.Of(make([]float32, n)))
	gaps := slices.Clone(data)
	return b, func() {
		for i, x := range gaps {
			if x == untouched && data[i] != untouched {
				t.Errorf("element %d, between those of a layout of %d, was changed to %v", i, n, data[i])
				return
			}
		}
	}
}

// nets are the transports that tests run over, by name.
func nets(t *testing.T) map[string]func(n int, fn rankFunc) []error {
	return map[string]func(n int, fn rankFunc) []error{
		"inproc": func(n int, fn rankFunc) []error { return commtest.Ranks(t.Context(), n, comm.Config{}, fn) },
		"tcp":    func(n int, fn rankFunc) []error { return overTCP(t, n, fn) },
		"shm":    func(n int, fn rankFunc) []error { return overMemory(t, n, fn) },
	}
}

// Every collective in every form takes layouts, on all ranks and on some.
func TestCollectivesTakeLayouts(t *testing.T) {
	for name, on := range nets(t) {
		for _, p := range []int{1, 2, 3, 4} {
			lengths := []int{0, 1, p + 1, 1000, 20_000}
			switch {
			case testing.Short():
				lengths = []int{2 * p}
			case p%2 > 0 && !stress.Asked(): // long vectors are divided among 2 and 4 ranks alike
				lengths = lengths[:4]
			}
			err := errors.Join(on(p, func(ctx context.Context, c *comm.Comm) error {
				for i, kind := range everyKind {
					qs := questions(kind, p, lengths, deviceOps)
					s := newLaidSpace(t, uint64(c.Rank()*100+i))
					if err := answerOn(ctx, c, s, qs); err != nil {
						return err
					}
					var some mem.Space = s
					if c.Rank()%2 == 0 {
						some = nil
					}
					if err := answerOn(ctx, c, some, qs[len(qs)/2:]); err != nil {
						return err
					}
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("%s, %d ranks: %v", name, p, err)
			}
		}
	}
}

// messageLengths are in float32: eager ones, and long ones of one chunk and of several.
var messageLengths = []int{0, 1, 7, 1000, 16 << 10, 17_001, 100_003, 300_000}

// Messages between any layouts, short and long, in every form, from and to this rank itself, too.
func TestMessagesTakeLayouts(t *testing.T) {
	for name, on := range nets(t) {
		for _, p := range []int{1, 2, 3} {
			if testing.Short() && p == 3 {
				continue
			}
			err := errors.Join(on(p, func(ctx context.Context, c *comm.Comm) error {
				r := rand.New(rand.NewPCG(uint64(c.Rank()), 3))
				for _, n := range messageLengths {
					for form := range 6 {
						if err := shiftLaid(ctx, t, c, r, n, form); err != nil {
							return fmt.Errorf("%d elements, form %d: %w", n, form, err)
						}
					}
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("%s, %d ranks: %v", name, p, err)
			}
		}
	}
}

// shiftLaid sends n elements to the next rank and receives as many from the one before. On either
// side they may be in one run.
func shiftLaid(ctx context.Context, t *testing.T, c *comm.Comm, r *rand.Rand, n, form int) error {
	to, from := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	send, recv := comm.Of(make([]float32, n)), comm.Of(make([]float32, n))
	check := func() {}
	if form != 4 {
		send, _ = laid(t, r, n)
	}
	if form != 5 {
		recv, check = laid(t, r, n)
	}
	values, want := make([]float32, n), make([]float32, n)
	for i := range n {
		values[i], want[i] = float32(c.Rank()*1000+i), float32(from*1000+i)
	}
	mem.Copy(send, comm.Of(values))
	st, err := exchangeLaid(ctx, c, send, to, recv, from, form)
	check()
	got := make([]float32, n)
	if err := errors.Join(err, mem.Copy(comm.Of(got), recv)); err != nil {
		return err
	}
	if st.Source != from || st.Bytes != 4*n {
		return fmt.Errorf("%d bytes from %d: want %d from %d", st.Bytes, st.Source, 4*n, from)
	}
	return equal("received", got, want)
}

func exchangeLaid(ctx context.Context, c *comm.Comm, send comm.Buffer, to int, recv comm.Buffer, from,
	form int) (comm.Status, error) {
	switch form {
	case 0:
		return c.Sendrecv(ctx, to, 0, send, from, 0, recv)
	case 1:
		in, out := c.Irecv(from, 0, recv), c.Issend(to, 0, send)
		st, err := in.Wait(ctx)
		return st, errors.Join(err, second(out.Wait(ctx)))
	case 2:
		in, out := c.RecvInit(from, 0, recv).Start(), c.SendInit(to, 0, send).Start()
		st, err := in.Wait(ctx)
		return st, errors.Join(err, second(out.Wait(ctx)))
	case 3:
		out := c.Isend(to, 0, send)
		m, err := c.Mprobe(ctx, from, 0)
		if err != nil {
			return comm.Status{}, err
		}
		st, err := m.Recv(ctx, recv)
		return st, errors.Join(err, second(out.Wait(ctx)))
	}
	out := c.Isend(to, 0, send)
	st, err := c.Recv(ctx, from, 0, recv)
	return st, errors.Join(err, second(out.Wait(ctx)))
}

// A message that is longer or shorter than the layout, or of another type.
func TestMessagesThatDoNotFitALayout(t *testing.T) {
	for name, on := range nets(t) {
		for _, n := range []int{10, 200_000} {
			err := errors.Join(on(2, func(ctx context.Context, c *comm.Comm) error {
				column := must(comm.Vector(n, 1, 2))
				if c.Rank() == 0 {
					return errors.Join(c.Send(ctx, 1, 0, lay(slices.Repeat([]float32{5}, 2*n), column)),
						c.Send(ctx, 1, 1, lay(slices.Repeat([]float32{6}, 2*n), column)),
						c.Send(ctx, 1, 2, lay(slices.Repeat([]float32{7}, 2*n), column)))
				}
				short, long := make([]float32, 2*n), make([]float32, 4*n)
				_, err := c.Recv(ctx, 0, 0, lay(short, must(comm.Vector(n/2, 1, 2))))
				if !errors.Is(err, comm.ErrTruncated) || short[0] != 5 || short[n-2] != 5 || short[n-1] != 0 ||
					short[n] != 0 {
					return fmt.Errorf("a longer message: %v, received %v", err, short[:3])
				}
				st, err := c.Recv(ctx, 0, 1, lay(long, must(comm.Vector(2*n, 1, 2))))
				if err != nil || st.Count() != n || long[2*n-2] != 6 || long[2*n] != 0 {
					return fmt.Errorf("a shorter message: %v, %d elements, received %v", err, st.Count(), long[:3])
				}
				ints := make([]int32, 2*n)
				if _, err := c.Recv(ctx, 0, 2, lay(ints, column)); !errors.Is(err, comm.ErrType) || ints[0] != 0 {
					return fmt.Errorf("a message of float32 as int32: %v", err)
				}
				return nil
			})...)
			if err != nil {
				t.Errorf("%s, %d elements: %v", name, n, err)
			}
		}
	}
}

// What names elements twice is sent, and not received into.
func TestLayoutsThatOverlapAreSentAlone(t *testing.T) {
	inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
		data := []int64{1, 2, 3, 4}
		twice := lay(data, must(comm.Indexed([]int{2, 2}, []int{2, 1})))
		other := make([]int64, 4)
		for what, err := range map[string]error{
			"recv":      second(c.Recv(ctx, 1-c.Rank(), 0, twice)),
			"irecv":     second(c.Irecv(1-c.Rank(), 0, twice).Wait(ctx)),
			"sendrecv":  second(c.Sendrecv(ctx, 1-c.Rank(), 0, comm.Of(other), 1-c.Rank(), 0, twice)),
			"recvinit":  second(c.RecvInit(1-c.Rank(), 0, twice).Start().Wait(ctx)),
			"bcast":     c.Bcast(ctx, 1-c.Rank(), twice),
			"allreduce": c.Allreduce(ctx, comm.Of(other), twice, comm.Sum),
			"iallgather": second(c.Iallgather(comm.Of(other[:2]),
				lay(data, must(comm.Vector(4, 1, 0)))).Wait(ctx)),
			"alltoallw": c.Alltoallw(ctx, []comm.Buffer{comm.Of(other), comm.Of(other)}, []comm.Buffer{twice, twice}),
		} {
			if !errors.Is(err, comm.ErrArgument) || !strings.Contains(err.Error(), "names elements twice") {
				return fmt.Errorf("%s into elements that are named twice: %v", what, err)
			}
		}
		if err := c.Allreduce(ctx, twice, comm.Of(other), comm.Sum); err != nil {
			return err
		}
		return equal("sum", other, []int64{6, 8, 4, 6})
	})
}

// In the memory of a device and with a layout, on the two sides of a message, and in one rank.
func TestMessagesBetweenDevicesAndLayouts(t *testing.T) {
	for _, n := range messageLengths[1:] {
		inBubble(t, 2, func(ctx context.Context, c *comm.Comm) error {
			d := memtest.NewDevice("gpu")
			there, err := d.Alloc(mem.F32, n)
			if err != nil {
				return err
			}
			defer d.Free(there)
			here, check := laid(t, rand.New(rand.NewPCG(uint64(n), 5)), n)
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(i + 1)
			}
			for i := range 4 {
				from, into, to := here, there, (c.Rank()+i)%2 // the other rank, or this one
				if i >= 2 {
					from, into = there, here
				}
				got := make([]float32, n)
				if err := errors.Join(mem.Copy(from, comm.Of(values)), mem.Copy(into, comm.Of(got))); err != nil {
					return err
				}
				sending := c.Isend(to, 0, from)
				_, err := c.Recv(ctx, to, 0, into)
				err = errors.Join(err, second(sending.Wait(ctx)), mem.Copy(comm.Of(got), into),
					equal("received", got, values))
				if check(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func TestMatricesOfAHost(t *testing.T) {
	const rows, cols = 300, 200
	for name, on := range nets(t) {
		err := errors.Join(on(2, func(ctx context.Context, c *comm.Comm) error {
			matrix, transposed := make([]float64, rows*cols), make([]float64, cols*rows)
			for i := range matrix {
				matrix[i] = float64(i)
			}
			if c.Rank() == 0 {
				for j := range cols {
					if err := c.Send(ctx, 1, j, lay(matrix[j:], must(comm.Vector(rows, 1, cols)))); err != nil {
						return err
					}
				}
				return nil
			}
			for j := range cols {
				if _, err := comm.Recv(ctx, c, 0, j, transposed[j*rows:][:rows]); err != nil {
					return err
				}
			}
			for i := range transposed {
				if want := float64(i%rows*cols + i/rows); transposed[i] != want {
					return fmt.Errorf("element %d of the transposed matrix is %v, want %v", i, transposed[i], want)
				}
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A communicator that breaks while messages of layouts are under way: their memory is left alone
// when the calls have returned, and others go on.
func TestLayoutsOfBrokenCommunicators(t *testing.T) {
	const n = 100_000
	for name, on := range nets(t) {
		err := errors.Join(on(2, func(ctx context.Context, c *comm.Comm) error {
			r := rand.New(rand.NewPCG(uint64(c.Rank()), 7))
			for range 3 {
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				send, _ := laid(t, r, n)
				recv, check := laid(t, r, n)
				in, out := d.Irecv(1-c.Rank(), 0, recv), d.Isend(1-c.Rank(), 0, send)
				if c.Rank() == 1 {
					d.Revoke("test")
				}
				for _, err := range []error{second(in.Wait(ctx)), second(out.Wait(ctx))} {
					if err != nil && !errors.Is(err, comm.ErrRevoked) {
						return err
					}
				}
				marks := make([]float32, n)
				for i := range marks {
					marks[i] = -1
				}
				got := make([]float32, n)
				if err := errors.Join(mem.Copy(recv, comm.Of(marks)), shiftLaid(ctx, t, c, r, n, 0),
					mem.Copy(comm.Of(got), recv), equal("left alone", got, marks)); err != nil {
					return err
				}
				check()
				d.Close(ctx) // fails, as it is broken
			}
			return nil
		})...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
