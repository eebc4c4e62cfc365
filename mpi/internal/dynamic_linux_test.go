package mpi

import (
	"errors"
	"fmt"
	"testing"

	"gompi/mpi/internal/abi"
	"gompi/mpi/internal/comms"
	"gompi/mpi/internal/errs"
)

func init() { jobs["dynamic"] = allDynamic }

// TestMemoryThatIsNotAttached: an operation on a dynamic window outside of what is attached is an
// error, of itself or of the flush behind it, changes nothing, and leaves the window whole.
func TestMemoryThatIsNotAttached(t *testing.T) {
	for _, transport := range []string{"", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			ranks(t, 2, "dynamic", "GOMPI_TRANSPORT="+transport)
		})
	}
}

// A dynamicWindow is one of two ranks, each with some memory, of which the first words are
// attached.
type dynamicWindow struct {
	w    abi.Handle
	mine []int32
	at   []int64 // where each rank has its memory
	me   int
}

const (
	attachedWords, allWords = 100, 4000

	longHandle = abi.Handle(0x20a)
)

func allDynamic() error {
	d := &dynamicWindow{mine: make([]int32, allWords), at: make([]int64, 2), me: comms.World.P2P.Rank()}
	base := []int64{int64(addr(d.mine))}
	err := errors.Join(
		do("Win_create_dynamic", abi.Handle(abi.InfoNull), world0, &d.w),
		do("Win_attach", d.w, addr(d.mine), 4*attachedWords), // in two parts, which touch
		do("Win_attach", d.w, addr(d.mine[attachedWords:]), 4),
		do("Win_detach", d.w, addr(d.mine[attachedWords:])),
		do("Allgather", addr(base), 1, longHandle, addr(d.at), 1, longHandle, world0))
	if err != nil {
		return err
	}
	for _, rank := range []int{0, 1} {
		err = errors.Join(err, d.refused(rank), d.many(rank))
	}
	return errors.Join(err, d.fenced(), do("Win_free", &d.w))
}

// place returns the displacement of a word of a rank.
func (d *dynamicWindow) place(rank, word int) int { return int(d.at[rank]) + 4*word }

// refused has rank 0 try all operations on the memory of a rank.
func (d *dynamicWindow) refused(rank int) error {
	if err := do("Barrier", world0); err != nil || d.me != 0 {
		return errors.Join(err, do("Barrier", world0), d.unchanged())
	}
	in, out := make([]int32, allWords), make([]int32, allWords)
	for i := range in {
		in[i] = 7
	}
	err := do("Win_lock", 302, rank, 0, d.w)
	for _, word := range []int{attachedWords, attachedWords - 1, -3, allWords / 2} {
		for _, n := range []int{2, allWords - attachedWords} {
			at := d.place(rank, word)
			for what, call := range map[string]func() error{
				"put": func() error { return do("Put", addr(in), n, intHandle, rank, at, n, intHandle, d.w) },
				"get": func() error { return do("Get", addr(out), n, intHandle, rank, at, n, intHandle, d.w) },
				"accumulate": func() error {
					return do("Accumulate", addr(in), n, intHandle, rank, at, n, intHandle, sumHandle, d.w)
				},
				"get and accumulate": func() error {
					return do("Get_accumulate", addr(in), n, intHandle, addr(out), n, intHandle, rank, at, n, intHandle,
						sumHandle, d.w)
				},
			} {
				err = errors.Join(err, d.isRefused(fmt.Sprintf("%s of %d words from %d on", what, n, word), rank, call))
			}
		}
	}
	high := 1<<62 + 8
	err = errors.Join(err,
		d.isRefused("fetch", rank, func() error {
			return do("Fetch_and_op", addr(in), addr(out), intHandle, rank, 64, sumHandle, d.w)
		}),
		d.isRefused("swap", rank, func() error {
			return do("Compare_and_swap", addr(in), addr(in), addr(out), intHandle, rank, 64, d.w)
		}),
		d.isRefused("high", rank, func() error {
			return do("Put", addr(in), 1, intHandle, rank, high, 1, intHandle, d.w)
		}),
		d.isRefused("request", rank, func() error {
			var h abi.Handle
			if err := do("Rget", addr(out), 1, intHandle, rank, 64, 1, intHandle, d.w, &h); err != nil {
				return err
			}
			return do("Wait", &h, nil)
		}))
	in[0] = 5 // the window is whole
	err = errors.Join(err, do("Put", addr(in), 1, intHandle, rank, d.place(rank, 3), 1, intHandle, d.w),
		do("Win_flush", rank, d.w),
		do("Get", addr(out), 1, intHandle, rank, d.place(rank, 3), 1, intHandle, d.w), do("Win_unlock", rank, d.w),
		wants("word", &out[0], 5))
	out[0] = 0
	return errors.Join(err, same("what was refused", out, make([]int32, allWords)), do("Barrier", world0),
		d.unchanged())
}

// isRefused returns an error unless an operation fails, or the flush behind it, and not the next.
func (d *dynamicWindow) isRefused(what string, rank int, call func() error) error {
	err := errors.Join(call(), do("Win_flush", rank, d.w))
	if c := errs.ClassOf(err); c != errs.RMARange {
		return fmt.Errorf("%s: %v: class %d, want %d", what, err, c, errs.RMARange)
	}
	return do("Win_flush", rank, d.w)
}

// unchanged returns an error if a refused operation has stored something.
func (d *dynamicWindow) unchanged() error {
	for i, x := range d.mine {
		if x != 0 && i != 3 {
			return fmt.Errorf("word %d is %d", i, x)
		}
	}
	return nil
}

// many has more regions than a rank tells the others of its host, with gaps between them.
func (d *dynamicWindow) many(rank int) error {
	const first, regions = 1000, 300
	in := []int32{1, 2}
	if d.me == rank {
		for i := range regions {
			if err := do("Win_attach", d.w, addr(d.mine[first+2*i:]), 4); err != nil {
				return err
			}
		}
	}
	err := do("Barrier", world0)
	if d.me == 0 {
		at := d.place(rank, first+2*(regions-1))
		err = errors.Join(err, do("Win_lock", 302, rank, 0, d.w),
			do("Put", addr(in), 1, intHandle, rank, at, 1, intHandle, d.w), do("Win_flush", rank, d.w),
			d.isRefused("a gap", rank, func() error {
				return do("Put", addr(in), 2, intHandle, rank, at-8, 2, intHandle, d.w)
			}),
			do("Win_unlock", rank, d.w))
	}
	if err = errors.Join(err, do("Barrier", world0)); d.me == rank {
		last := &d.mine[first+2*(regions-1)]
		err = errors.Join(err, wants("the last region", last, 1))
		*last = 0
		for i := range regions {
			err = errors.Join(err, do("Win_detach", d.w, addr(d.mine[first+2*i:])))
		}
	}
	return errors.Join(err, d.unchanged())
}

// fenced has a fence end although an operation before it was refused.
func (d *dynamicWindow) fenced() error {
	in, peer := []int32{1}, 1-d.me
	err := do("Win_fence", 0, d.w)
	refused := errors.Join(do("Put", addr(in), 1, intHandle, peer, 64, 1, intHandle, d.w), do("Win_fence", 0, d.w))
	if c := errs.ClassOf(refused); c != errs.RMARange {
		err = errors.Join(err, fmt.Errorf("%v: class %d, want %d", refused, c, errs.RMARange))
	}
	return errors.Join(err, do("Win_fence", 0, d.w), d.unchanged())
}
