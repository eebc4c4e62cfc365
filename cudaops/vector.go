package cudaops

import "gompi/internal/mem"

// A Vector is elements of type T in the memory of a Device, and a small value; copies share the
// elements.
type Vector[T Scalar] struct{ b Buffer }

// Make returns n zeroed elements on d. Free frees them.
func Make[T Scalar](d *Device, n int) (Vector[T], error) {
	b, err := d.Alloc(mem.TypeOf[T](), n)
	return Vector[T]{b}, err
}

// Upload returns a copy of s on d, for Free to free.
func Upload[T Scalar](d *Device, s []T) (Vector[T], error) {
	v, err := Make[T](d, len(s))
	if err != nil {
		return v, err
	}
	if err := v.CopyFrom(s); err != nil {
		v.Free()
		return Vector[T]{}, err
	}
	return v, nil
}

// Buffer returns the elements for comm's methods.
func (v Vector[T]) Buffer() Buffer { return v.b }

// Len returns the number of elements.
func (v Vector[T]) Len() int { return v.b.Len() }

// Slice returns elements [i, j), the same memory. The result is not for Free.
func (v Vector[T]) Slice(i, j int) Vector[T] { return Vector[T]{v.b.Slice(i, j)} }

// CopyFrom copies s, of the same length, to the device.
func (v Vector[T]) CopyFrom(s []T) error { return v.b.Space().Copy(v.b, mem.Of(s)) }

// CopyTo copies the elements to s, of the same length.
func (v Vector[T]) CopyTo(s []T) error { return v.b.Space().Copy(mem.Of(s), v.b) }

// Free frees a Vector of Make or Upload.
func (v Vector[T]) Free() { v.b.Space().Free(v.b) }
