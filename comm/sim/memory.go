package sim

import "gompi/internal/mem"

// A memory's vectors have a length and no content, so that many ranks can call with long vectors.
// Copies and reductions take the rank's processor time.
type memory struct {
	r      *Rank
	next   uintptr
	copied float64 // the rank's clock after the last Copy
}

func (r *Rank) space() *memory {
	r.memory.r = r
	return &r.memory
}

// Name implements mem.Space.
func (s *memory) Name() string { return "simulated" }

// Alloc implements mem.Space.
func (s *memory) Alloc(t mem.Type, n int) (mem.Buffer, error) {
	s.next += 1 << 44 // longer than any vector: no two overlap
	return mem.Device(s, s.next, t, n), nil
}

// Free implements mem.Space.
func (s *memory) Free(mem.Buffer) {}

// Copy implements mem.Space.
func (s *memory) Copy(dst, _ mem.Buffer) error {
	s.r.Work(float64(dst.Size()) * s.r.e.Reduce)
	s.copied = s.r.clock
	return nil
}

// reduce is the function of an operator. To store the result elsewhere, Combine copies an operand
// first. A real kernel copies and combines in one pass, so after a Copy the reduction is free.
func (s *memory) reduce(acc, _ mem.Buffer) {
	if s.copied != s.r.clock || s.copied == 0 {
		s.r.Work(float64(acc.Size()) * s.r.e.Reduce)
	}
}
