package compress

import "math"

// largest finds the numbers of largest magnitude by radix selection. Three passes count the numbers
// by their leading bits, 11 and two times 10 of the 31 without the sign, and so narrow down the
// least selected magnitude. The bits of magnitudes are in the order of the magnitudes, with
// infinity and NaN above all. Unlike quickselect, radix selection copies no number, and no input
// makes it slow.
type largest struct {
	counts [1 << 11]int
}

// find fills places with the indexes of the numbers of largest magnitude, in ascending order. Of
// equal magnitudes it takes the first. len(places) is from 1 to len(x).
func (l *largest) find(places []uint32, x []float32) {
	least, ties := l.least(x, len(places))
	n := 0
	for i, v := range x {
		switch m := magnitude(v); {
		case m < least:
			continue
		case m == least:
			if ties == 0 {
				continue
			}
			ties--
		}
		places[n] = uint32(i)
		n++
	}
}

// least returns the k-th largest magnitude, and the number of elements of exactly this magnitude
// among the k largest.
func (l *largest) least(x []float32, k int) (magn uint32, ties int) {
	shift := uint32(31)
	for _, bits := range [...]uint32{11, 10, 10} {
		counts, mask := l.counts[:1<<bits], uint32(1)<<bits-1
		clear(counts)
		above := shift
		shift -= bits
		for _, v := range x {
			if m := magnitude(v); m>>(above&31) == magn { // &31 saves a comparison
				counts[m>>(shift&31)&mask]++
			}
		}
		digit := mask
		for k > counts[digit] {
			k -= counts[digit]
			digit--
		}
		magn = magn<<bits | digit
	}
	return magn, k
}

// magnitude returns the bits of v without its sign.
func magnitude(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) }
