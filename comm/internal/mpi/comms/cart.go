package comms

import (
	"math"
	"slices"

	"gompi/comm/internal/mpi/abi"
	"gompi/comm/internal/mpi/errs"
)

// A cart is a grid of ranks, numbered with the last dimension first (row-major).
type cart struct {
	dims    []int
	periods []bool
}

func (t *cart) size() int {
	n := 1
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// coords returns where a rank is.
func (t *cart) coords(rank int) []int {
	at := make([]int, len(t.dims))
	for i := len(at) - 1; i >= 0; i-- {
		at[i], rank = rank%t.dims[i], rank/t.dims[i]
	}
	return at
}

// rank returns which one is at coords, false if that is outside the grid.
func (t *cart) rank(coords []int) (int, bool) {
	r := 0
	for i, x := range coords {
		if t.periods[i] {
			x = (x%t.dims[i] + t.dims[i]) % t.dims[i]
		}
		if x < 0 || x >= t.dims[i] {
			return 0, false
		}
		r = r*t.dims[i] + x
	}
	return r, true
}

// shifted returns the rank by places further in a dimension, MPI_PROC_NULL outside the grid.
func (t *cart) shifted(rank, dim, by int) int {
	at := t.coords(rank)
	at[dim] += by
	if r, ok := t.rank(at); ok {
		return r
	}
	return abi.ProcNull
}

func cartOf(ndims int, dims, periods abi.Array) (*cart, error) {
	if ndims < 0 {
		return nil, errs.New(errs.Dims, "ndims is %d: want 0 or more", ndims)
	}
	t := &cart{dims: dims.List(ndims), periods: make([]bool, ndims)}
	for i, x := range periods.Ints(ndims) {
		t.periods[i] = x != 0
	}
	for i, d := range t.dims {
		if d < 1 {
			return nil, errs.New(errs.Dims, "dimension %d is %d: want 1 or more", i, d)
		}
	}
	return t, nil
}

func CartCreate(c *Comm, ndims int, dims, periods abi.Array, reorder bool) (*Comm, error) {
	if err := CheckIntra(c); err != nil {
		return nil, err
	}
	t, err := cartOf(ndims, dims, periods)
	if err != nil {
		return nil, err
	}
	if t.size() > c.P2P.Size() {
		return nil, errs.New(errs.Dims, "the grid has %d places: want at most %d", t.size(), c.P2P.Size())
	}
	return c.firstOf(t.size(), topology{Kind: abi.CartTopology, cart: t})
}

func CartSub(c *Comm, remain abi.Array) (*Comm, error) {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return nil, err
	}
	old, sub, color := c.Topology.cart, &cart{}, 0
	at := old.coords(c.rank())
	for i, keep := range remain.Ints(len(at)) {
		if keep != 0 {
			sub.dims, sub.periods = append(sub.dims, old.dims[i]), append(sub.periods, old.periods[i])
		} else {
			color = color*old.dims[i] + at[i]
		}
	}
	d, err := c.adopt(c.P2P.Split(Forever, color, c.rank()))
	return d.with(topology{Kind: abi.CartTopology, cart: sub}, err)
}

func CartdimGet(c *Comm) (int, error) {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return 0, err
	}
	return len(c.Topology.cart.dims), nil
}

func CartGet(c *Comm, most int, dims, periods, coords abi.Array) error {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return err
	}
	t := c.Topology.cart
	if most < len(t.dims) {
		return errs.New(errs.Arg, "maxdims is %d: want %d or more", most, len(t.dims))
	}
	dims.Store(most, t.dims)
	coords.Store(most, t.coords(c.rank()))
	wraps := make([]int, len(t.periods))
	for i, p := range t.periods {
		wraps[i] = int(boolWord(p))
	}
	periods.Store(most, wraps)
	return nil
}

func CartCoords(c *Comm, rank, most int, coords abi.Array) error {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return err
	}
	t := c.Topology.cart
	switch {
	case rank < 0 || rank >= t.size():
		return errs.New(errs.Rank, "rank %d is not from 0 to %d", rank, t.size()-1)
	case most < len(t.dims):
		return errs.New(errs.Arg, "maxdims is %d: want %d or more", most, len(t.dims))
	}
	coords.Store(most, t.coords(rank))
	return nil
}

func CartRank(c *Comm, coords abi.Array) (int, error) {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return 0, err
	}
	at := coords.List(len(c.Topology.cart.dims))
	r, ok := c.Topology.cart.rank(at)
	if !ok {
		return 0, errs.New(errs.Arg, "%v is outside the grid %v", at, c.Topology.cart.dims)
	}
	return r, nil
}

func CartShift(c *Comm, dim, by int) (source, destination int, err error) {
	if err := checkTopology(c, abi.CartTopology); err != nil {
		return 0, 0, err
	}
	t := c.Topology.cart
	if dim < 0 || dim >= len(t.dims) {
		return 0, 0, errs.New(errs.Dims, "dimension %d is not from 0 to %d", dim, len(t.dims)-1)
	}
	return t.shifted(c.rank(), dim, -by), t.shifted(c.rank(), dim, by), nil
}

func CartMap(c *Comm, ndims int, dims, periods abi.Array) (int, error) {
	t, err := cartOf(ndims, dims, periods)
	if err != nil {
		return 0, err
	}
	return mapFirst(c, t.size())
}

// DimsCreate makes the free dimensions, which are 0, as equal as can be, the first the longest.
func DimsCreate(nnodes, ndims int, dims abi.Array) error {
	if nnodes < 1 {
		return errs.New(errs.Arg, "nnodes is %d: want 1 or more", nnodes)
	}
	if ndims > 0 && dims == 0 {
		return errs.New(errs.Dims, "the dimensions are NULL")
	}
	all := dims.Ints(ndims)
	free := 0
	for i, d := range all {
		switch {
		case d < 0:
			return errs.New(errs.Dims, "dimension %d is %d: want 0 or more", i, d)
		case d == 0:
			free++
		case nnodes%int(d) != 0:
			return errs.New(errs.Dims, "dimension %d is %d, which does not divide %d", i, d, nnodes)
		default:
			nnodes /= int(d)
		}
	}
	if free == 0 {
		if nnodes != 1 && ndims > 0 {
			return errs.New(errs.Dims, "the dimensions hold fewer than all nodes")
		}
		return nil
	}
	lengths := evenly(nnodes, free)
	for i, d := range all {
		if d == 0 {
			all[i], lengths = int32(lengths[0]), lengths[1:]
		}
	}
	return nil
}

// evenly returns k factors of n, the greatest first. The greatest and the smallest differ as little
// as can be; of several such the one whose smallest factor is greatest is taken, then the next.
func evenly(n, k int) (best []int) {
	divisors, spread := divisorsOf(n), n
	for _, least := range divisors {
		for power(least, k) <= n && power(least+spread-1, k) >= n {
			rest, ok := within(divisors, n/least, k-1, least, least+spread-1)
			if !ok {
				break
			}
			best = append([]int{least}, rest...)
			spread = best[k-1] - least
		}
	}
	slices.Reverse(best)
	return best
}

// divisorsOf returns the divisors of n, the greatest first.
func divisorsOf(n int) (all []int) {
	for d := 1; d*d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
			if d*d < n {
				all = append(all, n/d)
			}
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}

// within returns k factors of n from least to most, the smallest first and as great as can be.
func within(divisors []int, n, k, least, most int) ([]int, bool) {
	if k == 0 {
		return nil, n == 1
	}
	if power(most, k) < n {
		return nil, false
	}
	for _, d := range divisors {
		if d < least {
			break
		}
		if d > most || n%d != 0 || power(d, k) > n {
			continue
		}
		if rest, ok := within(divisors, n/d, k-1, d, most); ok {
			return append([]int{d}, rest...), true
		}
	}
	return nil, false
}

// power returns the kth power of n, or a number above all counts of ranks.
func power(n, k int) int { return int(min(math.Pow(float64(n), float64(k)), math.MaxInt32+1)) }
