// Package sampler deals the samples of a data set to the ranks of a data-parallel training, batch
// by batch. It has no other computation and no communication:
//
//	s, err := sampler.New(len(data), batch, seed, sampler.Short)
//	at := sampler.Position{}
//	for at.Epoch < epochs {
//		share, total, next := s.Next(nil, at, c.Rank(), c.Size())
//		...
//		at = next
//	}
package sampler

import "fmt"

// A Sampler deals the samples of a data set to the ranks, batch by batch, shuffled anew for every
// epoch. The samples depend on a Position alone, so a job can continue where another stopped, with
// any number of ranks: together they draw the same batches. A Sampler needs no memory for the
// shuffled order, and many goroutines may use it.
type Sampler struct {
	n, batch int64
	micro    int64 // samples of a micro-batch, which no two ranks share
	seed     uint64
	tail     Tail
}

// A Tail specifies the treatment of the samples at the end of an epoch that do not fill a batch.
type Tail int

// The tails. With Short and Drop no sample is drawn twice in an epoch.
const (
	Short Tail = iota // the last batch is shorter; a rank's share may be empty
	Drop              // the samples are left out of this epoch
	Pad               // the last batch is filled with the first samples again
)

// A Position is a job's progress: samples of all ranks together, within an epoch. The zero Position
// is the start.
type Position struct {
	Epoch  int64
	Offset int64
}

// New returns a Sampler over samples 0 to n-1, in batches of batch
// samples of all ranks together.
func New(n, batch int, seed uint64, tail Tail) (*Sampler, error) {
	if n < 1 || batch < 1 {
		return nil, fmt.Errorf("sampler: %d samples in batches of %d: want at least 1 of each", n, batch)
	}
	if tail == Drop && batch > n {
		return nil, fmt.Errorf("sampler: a batch of %d samples of %d would drop them all: want a smaller batch", batch, n)
	}
	return &Sampler{n: int64(n), batch: int64(batch), micro: 1, seed: seed, tail: tail}, nil
}

// Micro returns a Sampler of the same batches that divides each into micro-batches of n samples
// (the last may be shorter) and deals whole ones. So the k-th micro-batch of a batch is the same on
// any number of ranks, as ddp.Options.Quantum needs: a rank makes a pass for each n samples of its
// share.
func (s *Sampler) Micro(n int) (*Sampler, error) {
	if n < 1 {
		return nil, fmt.Errorf("sampler: micro-batches of %d samples: want at least 1", n)
	}
	other := *s
	other.micro = int64(n)
	return &other, nil
}

// Passes returns the largest number of micro-batches of a batch on a rank, of size: the value for
// ddp.Options.Accumulate. A rank with fewer calls SkipRest after its last.
func (s *Sampler) Passes(size int) int {
	return (s.microBatches(int(s.batch)) + size - 1) / size
}

func (s *Sampler) microBatches(samples int) int {
	return int((int64(samples) + s.micro - 1) / s.micro)
}

// Next appends to share the samples of rank, of size, in the batch at p. It also returns the number
// of samples in the whole batch and the next Position, whose Epoch is higher if the batch ended the
// epoch.
func (s *Sampler) Next(share []int, p Position, rank, size int) (mine []int, total int, next Position) {
	if p.Offset >= s.end() {
		p = Position{Epoch: p.Epoch + 1}
	}
	end := p.Offset + s.batch
	if s.tail == Short {
		end = min(end, s.n)
	}
	total = int(end - p.Offset)
	order := newPermutation(uint64(s.n), s.seed, uint64(p.Epoch))
	lo, hi := Shard(s.microBatches(total), rank, size)
	for i := lo * int(s.micro); i < min(hi*int(s.micro), total); i++ {
		at := uint64(p.Offset+int64(i)) % uint64(s.n)
		share = append(share, int(order.at(at)))
	}
	next = Position{p.Epoch, end}
	if end >= s.end() {
		next = Position{Epoch: p.Epoch + 1}
	}
	return share, total, next
}

// end returns the first Offset at which no batch of an epoch begins.
func (s *Sampler) end() int64 {
	if s.tail == Drop {
		return s.n - s.batch + 1
	}
	return s.n
}

// Steps returns the number of batches in an epoch.
func (s *Sampler) Steps() int {
	return int((s.end() + s.batch - 1) / s.batch)
}

// Shard returns the range [lo, hi) of n samples, or of anything else, that belongs to rank, of
// size. Each sample belongs to one rank, as evenly as possible. It suits an evaluation, which must
// count no sample twice.
func Shard(n, rank, size int) (lo, hi int) {
	return n * rank / size, n * (rank + 1) / size
}
