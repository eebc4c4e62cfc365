//go:build linux && cgo

package main

import (
	"sync"
	"sync/atomic"
)

// A table gives C numbers for Go's values. A look-up takes no lock. A number is not used again: its
// upper half counts the values that its slot has had.
type table[T any] struct {
	slots atomic.Pointer[[]*slot[T]]
	mu    sync.Mutex // held to add and remove
	free  []int32
}

// A slot holds a value while number is not 0.
type slot[T any] struct {
	number atomic.Int64
	value  T
	next   int64 // number of the next value
}

// perUse is added to a slot's number for each value.
const perUse = 1 << 32

// add returns the number of v. The first value gets 1.
func (t *table[T]) add(v T) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		t.grow()
	}
	last := len(t.free) - 1
	s := (*t.slots.Load())[t.free[last]]
	t.free = t.free[:last]
	s.value = v
	s.number.Store(s.next)
	return s.next
}

// grow doubles the slots. Concurrent look-ups may still use the old list.
func (t *table[T]) grow() {
	var old []*slot[T]
	if all := t.slots.Load(); all != nil {
		old = *all
	}
	slots := make([]*slot[T], max(8, 2*len(old)))
	copy(slots, old)
	for i := len(slots) - 1; i >= len(old); i-- {
		slots[i] = &slot[T]{next: int64(i) + 1}
		t.free = append(t.free, int32(i))
	}
	t.slots.Store(&slots)
}

func (t *table[T]) slot(number int64) *slot[T] {
	i := int64(uint32(number)) - 1
	slots := t.slots.Load()
	if slots == nil || i < 0 || i >= int64(len(*slots)) {
		return nil
	}
	if s := (*slots)[i]; s.number.Load() == number {
		return s
	}
	return nil
}

// find returns the value with a number.
func (t *table[T]) find(number int64) (v T, ok bool) {
	if s := t.slot(number); s != nil {
		return s.value, true
	}
	return v, false
}

// remove removes the value with a number, and reports whether there was one.
func (t *table[T]) remove(number int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot(number)
	if s == nil {
		return false
	}
	s.number.Store(0)
	var none T
	s.value = none
	s.next += perUse
	t.free = append(t.free, int32(uint32(number))-1)
	return true
}

// numbers returns the numbers of all values.
func (t *table[T]) numbers() (all []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slots := t.slots.Load(); slots != nil {
		for _, s := range *slots {
			if n := s.number.Load(); n != 0 {
				all = append(all, n)
			}
		}
	}
	return all
}
