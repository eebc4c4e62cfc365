package abi

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A Handle is the number of an object of a kind, since C has a type for each kind.
type Handle int32

// A registry has the objects of a kind by their numbers. Lookups take no lock.
type registry[T any] struct {
	Null     Handle
	handleOf func(x *T) Handle
	all      atomic.Pointer[[]*T] // grown by copying

	// late delays the reuse of a number until nothing refers to its former object: for operations
	// under way, the face looks up objects of its own by this number.
	late bool

	mu   sync.Mutex
	free []Handle
	next Handle
}

func NewRegistry[T any](null Handle, handleOf func(x *T) Handle) *registry[T] {
	r := &registry[T]{Null: null, handleOf: handleOf, next: FirstHandle}
	all := make([]*T, 2*FirstHandle)
	r.all.Store(&all)
	return r
}

// Find returns nil if there is none.
func (r *registry[T]) Find(h Handle) *T {
	if all := *r.all.Load(); uint(h) < uint(len(all)) {
		return all[h]
	}
	return nil
}

// HandleOf returns the number of x, or of none if x is nil.
func (r *registry[T]) HandleOf(x *T) Handle {
	if x == nil {
		return r.Null
	}
	return r.handleOf(x)
}

// Add gives x a number.
func (r *registry[T]) Add(x *T) Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.next
	if n := len(r.free); n > 0 {
		h, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.next++
	}
	r.Set(h, x)
	if r.late {
		runtime.AddCleanup(x, r.reuse, h)
	}
	return h
}

// Set stores an object where others do not look yet.
func (r *registry[T]) Set(h Handle, x *T) {
	all := *r.all.Load()
	if int(h) >= len(all) {
		more := make([]*T, 2*len(all))
		copy(more, all)
		r.all.Store(&more)
		all = more
	}
	all[h] = x
}

// Remove makes h the number of nothing, and later of another object.
func (r *registry[T]) Remove(h Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.all.Load())[h] = nil
	if h >= FirstHandle && !r.late {
		r.free = append(r.free, h)
	}
}

// RemoveLate is Remove of x, whose number is given to another object only when nothing refers to x
// any more.
func (r *registry[T]) RemoveLate(h Handle, x *T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.all.Load())[h] = nil
	runtime.AddCleanup(x, r.reuse, h)
}

// Restore makes h the number of x again.
func (r *registry[T]) Restore(h Handle, x *T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	(*r.all.Load())[h] = x
}

func (r *registry[T]) reuse(h Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, h)
}

// LateReuse returns r, late.
func (r *registry[T]) LateReuse() *registry[T] {
	r.late = true
	return r
}

// Any reports whether f returns true for any object of the program, or for any object numbered as a
// receive of the face. No object is added or removed meanwhile.
func (r *registry[T]) Any(f func(*T) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc((*r.all.Load())[FirstHeld:r.next], func(x *T) bool { return x != nil && f(x) })
}

// Each calls f for the objects that programs have made.
func (r *registry[T]) Each(f func(*T)) {
	for _, x := range (*r.all.Load())[FirstHandle:] {
		if x != nil {
			f(x)
		}
	}
}
