package mem

import "unsafe"

// truth returns 1 for any value but 0.
func truth[T unsigned](v T) (t T) {
	if v != 0 {
		t = 1
	}
	return t
}

func land[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = truth(x[i]) & truth(y[i])
	}
}

func lor[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = truth(x[i] | y[i])
	}
}

func lxor[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = truth(x[i]) ^ truth(y[i])
	}
}

func band[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = x[i] & y[i]
	}
}

func bor[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = x[i] | y[i]
	}
}

func bxor[T unsigned](dst, a, b unsafe.Pointer, n int) {
	d, x, y := operands[T](dst, a, b, 0, n)
	for i := range d {
		d[i] = x[i] ^ y[i]
	}
}

// byWords returns the kernel of a bitwise operator for a type of size bytes: as bits know no
// boundaries, the kernel takes eight bytes at a time, then the rest.
func byWords(size int, k64, k8 kernel) kernel {
	return func(dst, a, b unsafe.Pointer, n int) {
		words := n * size / 8
		k64(dst, a, b, words)
		if rest := n * size % 8; rest > 0 { // else the pointers would leave their allocations
			k8(unsafe.Add(dst, 8*words), unsafe.Add(a, 8*words), unsafe.Add(b, 8*words), rest)
		}
	}
}
