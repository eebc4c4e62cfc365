package nn

import "gompi/comm/ddp"

// A MaxPool takes the largest number of each square of 2 x 2 pixels, in each channel. A last line
// or column that fills no square is left out.
type MaxPool struct {
	in, out Image
	from    []int32 // for each output, the index of its number in the picture
	y, dx   Matrix
}

// NewMaxPool returns a MaxPool, and the shape of its output.
func NewMaxPool(in Image) (*MaxPool, Image) {
	out := Image{in.Height / 2, in.Width / 2, in.Channels}
	return &MaxPool{in: in, out: out}, out
}

// Params returns nil.
func (m *MaxPool) Params() []*ddp.Param { return nil }

// Forward returns the smaller pictures.
func (m *MaxPool) Forward(x Matrix) Matrix {
	y := room(&m.y, x.Rows, m.out.Len())
	if len(m.from) < len(y.Data) {
		m.from = make([]int32, len(y.Data))
	}
	at, n := 0, m.in.Channels
	for p := range x.Rows {
		picture := x.Data[p*x.Stride:][:x.Cols]
		for i := range m.out.Height {
			for j := range m.out.Width {
				m.largest(y.Data[at:][:n], m.from[at:][:n], picture, (2*i*m.in.Width+2*j)*n)
				at += n
			}
		}
	}
	return y
}

// largest stores, for each channel, the largest number of the square whose first pixel is at first,
// and its index. It has no branches, which the processor would often mispredict: max and a choice
// between two integers need none.
func (m *MaxPool) largest(y []float32, from []int32, picture []float32, first int) {
	n, right, down := len(y), m.in.Channels, m.in.Width*m.in.Channels
	from = from[:n]
	a, b := picture[first:][:n], picture[first+right:][:n]
	c, d := picture[first+down:][:n], picture[first+down+right:][:n]
	for i := range y {
		upper, lower := first, first+down
		if b[i] > a[i] {
			upper += right
		}
		if d[i] > c[i] {
			lower += right
		}
		v, w := max(a[i], b[i]), max(c[i], d[i])
		if w > v {
			upper = lower
		}
		y[i], from[i] = max(v, w), int32(upper+i)
	}
}

// Backward has nothing to do.
func (m *MaxPool) Backward(Matrix) {}

// InputGradient gives each gradient to the number that was the largest.
func (m *MaxPool) InputGradient(dy Matrix) Matrix {
	dx := room(&m.dx, dy.Rows, m.in.Len())
	clear(dx.Data)
	for p := range dy.Rows {
		picture := dx.Data[p*dx.Stride:]
		for i, g := range dy.Data[p*dy.Stride:][:dy.Cols] {
			picture[m.from[p*dy.Cols+i]] += g
		}
	}
	return dx
}
