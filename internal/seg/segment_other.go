//go:build !linux

package seg

import (
	"errors"

	"gompi/internal/world"
)

// New fails: hosts other than Linux have no segment.
func New([]world.Rank) (*Segment, error) { return nil, errors.ErrUnsupported }

// Attach fails: hosts other than Linux have no segment.
func Attach(int) (*Segment, error) { return nil, errors.ErrUnsupported }

// Extension returns nothing.
func (s *Segment) Extension() ([]byte, error) { return nil, nil }

// Claim fails.
func (s *Segment) Claim(off, n int) error { return errors.ErrUnsupported }

// ClaimArena fails.
func (s *Segment) ClaimArena(local world.LocalRank, off, n int) error { return errors.ErrUnsupported }

// ClaimHuge fails.
func (s *Segment) ClaimHuge(local world.LocalRank, off, n int) error { return errors.ErrUnsupported }

// Release fails.
func (s *Segment) Release(off, n int) error { return errors.ErrUnsupported }

// ReleaseArena fails.
func (s *Segment) ReleaseArena(local world.LocalRank, off, n int) error { return errors.ErrUnsupported }

// MemoryLimit returns no limit: no code for other systems asks for one.
func MemoryLimit() Limit { return unlimited }

func (s *Segment) mapArenas() {}

// Close does nothing.
func (s *Segment) Close() error { return nil }
