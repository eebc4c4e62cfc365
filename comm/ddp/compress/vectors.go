package compress

import "math"

// negligible is the least share of its length that an independent column keeps when orthogonalized:
// a smaller rest is mostly rounding errors of float32.
const negligible = 1e-5

// orthonormalize makes the columns of p, of n numbers, orthogonal to each other and of length 1,
// one after the other (modified Gram-Schmidt), each twice, since the first pass leaves rounding
// errors. A column that depends on earlier ones becomes zero.
func orthonormalize(p []float32, n int) {
	for k := 0; k < len(p); k += n {
		col := p[k:][:n]
		before := norm(col)
		for range 2 {
			for i := 0; i < k; i += n {
				addScaled(col, p[i:][:n], -float32(dot64(col, p[i:][:n])))
			}
		}
		if after := norm(col); after > negligible*before {
			scale(col, 1/after)
		} else {
			clear(col)
		}
	}
}

// norm returns the length of x.
func norm(x []float32) float64 { return math.Sqrt(dot64(x, x)) }

func dot64(a, b []float32) float64 {
	b = b[:len(a)]
	var s float64
	for i, v := range a {
		s += float64(v) * float64(b[i])
	}
	return s
}

// dots sets dst[i] to the product of row i of rows and x, of its length. Four rows are read side by
// side, so that consecutive additions are independent.
func dots(dst, rows, x []float32) {
	n := len(x)
	for ; len(dst) >= 4; dst, rows = dst[4:], rows[4*n:] {
		a, b, c, d := rows[:n], rows[n:][:n], rows[2*n:][:n], rows[3*n:][:n]
		var s0, s1, s2, s3 float32
		for j, v := range x {
			s0 += a[j] * v
			s1 += b[j] * v
			s2 += c[j] * v
			s3 += d[j] * v
		}
		dst[0], dst[1], dst[2], dst[3] = s0, s1, s2, s3
	}
	for i := range dst {
		dst[i] = float32(dot64(rows[i*n:][:n], x))
	}
}

// addRows adds by[i*stride] times row i of rows, of its length, to dst.
func addRows(dst, rows, by []float32, stride int) {
	n, i := len(dst), 0
	for ; len(rows) >= 4*n; rows, i = rows[4*n:], i+4*stride {
		a, b, c, d := rows[:n], rows[n:][:n], rows[2*n:][:n], rows[3*n:][:n]
		w, x, y, z := by[i], by[i+stride], by[i+2*stride], by[i+3*stride]
		for j := range dst {
			dst[j] += w*a[j] + x*b[j] + (y*c[j] + z*d[j])
		}
	}
	for ; len(rows) > 0; rows, i = rows[n:], i+stride {
		addScaled(dst, rows[:n], by[i])
	}
}

// addScaled adds by*x to dst.
func addScaled(dst, x []float32, by float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += by * x[i]
	}
}

// scale multiplies x by a number.
func scale(x []float32, by float64) {
	for i, v := range x {
		x[i] = float32(float64(v) * by)
	}
}
