package typemap

import (
	"encoding/binary"
	"math/bits"

	"gompi/internal/core/layout"
)

// ExternalSize returns the bytes of n elements in external32.
func (t *Type) ExternalSize(n int) int { return n * t.external }

// PackExternal packs n elements at base into dst as external32 has them, and returns their
// bytes.
func (t *Type) PackExternal(dst []byte, base uintptr, n int) (int, error) {
	return t.external32(dst, base, n, (*Basic).encode)
}

// UnpackExternal unpacks n elements to base from the external32 in src, and returns their bytes.
func (t *Type) UnpackExternal(base uintptr, n int, src []byte) (int, error) {
	return t.external32(src, base, n, (*Basic).decode)
}

func (t *Type) external32(buf []byte, base uintptr, n int,
	convert func(b *Basic, external, memory []byte)) (int, error) {
	need := t.ExternalSize(n)
	if need > len(buf) {
		return 0, wrong(ErrTruncate, "%d elements have %d bytes in external32, and the buffer %d: want at least as many", n, need, len(buf))
	}
	l := t.byElements()
	l = l.Times(n, t.extent)
	l.Runs(func(off, bytes int, e layout.Element) {
		b := e.(*Basic)
		for memory := layout.BytesAt(base+uintptr(off), bytes); len(memory) > 0; memory = memory[b.Size:] {
			convert(b, buf[:b.External], memory[:b.Size])
			buf = buf[b.External:]
		}
	})
	return need, nil
}

// A number has 128 bits.
type number struct{ high, low uint64 }

// encode makes external32 of an element.
func (b *Basic) encode(external, memory []byte) {
	e, m := len(external)/b.numbers, len(memory)/b.numbers
	for i := range b.numbers {
		v := little(memory[i*m:][:m])
		if b.extended {
			v = quadruple(v)
		}
		putBig(external[i*e:][:e], v)
	}
}

// decode makes an element of external32.
func (b *Basic) decode(external, memory []byte) {
	e, m := len(external)/b.numbers, len(memory)/b.numbers
	for i := range b.numbers {
		v := big(external[i*e:][:e])
		if b.extended {
			v = doubleExtended(v)
		} else if unused := 64 - 8*e; b.signed && unused > 0 {
			v.low = uint64(int64(v.low<<unused) >> unused)
		}
		putLittle(memory[i*m:][:m], v)
	}
}

// little reads a number of up to 16 bytes in the order of gompi's machines.
func little(b []byte) number {
	var full [16]byte
	copy(full[:], b)
	return number{binary.LittleEndian.Uint64(full[8:]), binary.LittleEndian.Uint64(full[:])}
}

// putLittle writes as much of a number as b has room for.
func putLittle(b []byte, v number) {
	var full [16]byte
	binary.LittleEndian.PutUint64(full[8:], v.high)
	binary.LittleEndian.PutUint64(full[:], v.low)
	copy(b, full[:])
}

func big(b []byte) number {
	var full [16]byte
	copy(full[16-len(b):], b)
	return number{binary.BigEndian.Uint64(full[:]), binary.BigEndian.Uint64(full[8:])}
}

func putBig(b []byte, v number) {
	var full [16]byte
	binary.BigEndian.PutUint64(full[:], v.high)
	binary.BigEndian.PutUint64(full[8:], v.low)
	copy(b, full[16-len(b):])
}

// quadruple converts x87's number, with a bit before the point and 63 after it, to binary128,
// with the 112 after the point alone. Both have 15 bits of exponent, with the same bias.
func quadruple(v number) number {
	return number{v.high<<48 | v.low<<1>>16, v.low << 49}
}

// doubleExtended converts binary128 to x87's number, and rounds to the nearest, or to even.
func doubleExtended(v number) number {
	const infinite = 0x7fff
	sign, exponent := v.high>>63, v.high>>48&infinite
	fraction := v.high<<16>>1 | v.low>>49
	rest := v.low << 15
	if exponent == infinite {
		if fraction == 0 && rest != 0 {
			fraction = 1 << 62 // a number that is none stays none
		}
		return number{sign<<15 | exponent, 1<<63 | fraction}
	}
	if exponent > 0 {
		fraction |= 1 << 63
	}
	if rest > 1<<63 || rest == 1<<63 && fraction&1 == 1 {
		var carry uint64
		if fraction, carry = bits.Add64(fraction, 1, 0); carry > 0 {
			fraction, exponent = 1<<63, exponent+1
		}
	}
	if exponent == 0 && fraction>>63 == 1 {
		exponent = 1
	}
	return number{sign<<15 | exponent, fraction}
}
