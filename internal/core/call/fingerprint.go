package call

import (
	"fmt"

	"gompi/internal/calls"
	"gompi/internal/mem"
)

// A Fingerprint holds the fields that MPI requires to be equal on all ranks of a collective. A
// field that need not be equal (the count of gatherv) stays zero. Every frame of the collective
// carries its sender's Fingerprint, so that a mismatch is found whichever ranks differ.
type Fingerprint struct {
	Kind   calls.Kind
	Type   mem.Type
	Op     mem.Op
	Of     calls.Kind // the call of the program that consists of this and others, None for itself
	Root   int32
	Digest uint32 // of counts that must be equal; only where there is no Root
	Size   uint32 // of an element of mem.Opaque, else 0
	Count  int64
}

// Words encodes f as two words, of which the first is not 0. f is passed by pointer: a copy right
// after its stores stalls the processor.
func (f *Fingerprint) Words() (a, b uint64) {
	if b = uint64(f.Count); f.Type == mem.Opaque {
		b = mem.PackElements(int(f.Count), int(f.Size))
	}
	return uint64(f.Kind) | uint64(f.Type)<<8 | uint64(f.Op)<<16 | uint64(f.Of)<<24 | uint64(uint32(f.Root)|f.Digest)<<32, b
}

// OfWords decodes the result of Words.
func OfWords(a, b uint64) Fingerprint {
	f := Fingerprint{Kind: calls.Kind(a), Type: mem.Type(a >> 8), Op: mem.Op(a >> 16), Of: calls.Kind(a >> 24),
		Count: int64(b)}
	if f.Kind.Rooted() {
		f.Root = int32(a >> 32)
	} else {
		f.Digest = uint32(a >> 32)
	}
	if f.Type == mem.Opaque {
		n, size := mem.UnpackElements(b)
		f.Count, f.Size = int64(n), uint32(size)
	}
	return f
}

// NeedsAll reports whether every rank needs data, directly or through others, of every other rank.
// Then no rank ends the collective before all ranks have begun it, after the same earlier calls.
func (f *Fingerprint) NeedsAll() bool {
	m := calls.Table[f.Kind].Needs
	return m == calls.Always || m == calls.IfAny && f.Count > 0
}

// String describes f as a user would write it: "allreduce(1024 float32, sum)".
func (f Fingerprint) String() string {
	if f.Of != calls.None {
		return f.Of.String() + "()"
	}
	s := f.Kind.String() + "("
	switch {
	case f.Type == mem.NoType:
	case f.Type == mem.Opaque:
		s += fmt.Sprintf("%d elements of %d bytes", f.Count, f.Size)
	case f.Count > 0 || !f.Kind.LocalCounts():
		s += fmt.Sprintf("%d %v", f.Count, f.Type)
	default:
		s += f.Type.String()
	}
	if f.Op != mem.NoOp {
		s += ", " + f.Op.String()
	}
	if f.Kind.Rooted() && f.Root >= 0 {
		s += fmt.Sprintf(", root %d", f.Root)
	}
	if f.Digest != 0 {
		s += fmt.Sprintf(", counts #%08x", f.Digest)
	}
	return s + ")"
}

// DigestOf returns a hash of a list (FNV-1a, a word at a time).
func DigestOf[T ~int | ~int32](list []T) uint32 {
	h := uint64(14695981039346656037)
	for _, c := range list {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return uint32(h>>32) ^ uint32(h)
}
