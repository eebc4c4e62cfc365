package typemap

// A signature is a hash of the sequence of a type's elements: sum over all of key * factor^i.
type signature struct{ sum, power uint64 } // power is factor^length

const factor = 0x9e3779b97f4a7c15

// signature returns the signature of a single element. Types of different languages with the same
// numbers are equal, and so are signed and unsigned types, and bytes and characters: mixing them
// is common, and does no harm.
func (b *Basic) signature() signature {
	kind := uint64(1)
	switch b.Class {
	case Float:
		kind = 2
	case Complex:
		kind = 3
	}
	return signature{(kind<<8 | uint64(b.Size)) * 0xbf58476d1ce4e5b9, factor}
}

// and returns the signature of a sequence followed by another.
func (s signature) and(t signature) signature {
	if s.power == 0 { // of no elements
		return t
	}
	if t.power == 0 {
		return s
	}
	return signature{s.sum + s.power*t.sum, s.power * t.power}
}

// times returns the signature of n sequences behind each other.
func (s signature) times(n int) (all signature) {
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			all = all.and(s)
		}
		s = s.and(s)
	}
	return all
}

// Signature returns a hash of the type signature of n elements: of the numbers in a message, in
// their order, wherever they lie. The hash of no elements is 0.
func (t *Type) Signature(n int) uint64 { return t.signature.times(n).sum }
