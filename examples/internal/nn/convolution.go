package nn

import (
	"math"
	"math/rand/v2"

	"gompi/comm/ddp"
)

// An Image is the shape of pictures: a row of a batch has the pixels of a picture line by line,
// and for each pixel its channels side by side.
type Image struct{ Height, Width, Channels int }

// Len returns how many numbers a picture has.
func (s Image) Len() int { return s.Height * s.Width * s.Channels }

// A Convolution moves a square of k x k pixels over a picture, without padding. At each place the
// pixels under the square, times a matrix, give a pixel of the output. Those of all places are
// copied side by side first (im2col), so that one matrix product does a whole batch.
type Convolution struct {
	Weight, Bias *ddp.Param // k*k*channels x channels of the output
	in, out      Image
	k            int
	workers      Workers

	places   Matrix // a row for each place of each picture: what is under the square
	dPlaces  Matrix
	y, flat  Matrix // the output, and the same memory with a row for each pixel
	dx       Matrix
	pictures int
}

// NewConvolution returns a Convolution with Cautious weights, and the shape of its output.
func NewConvolution(name string, in Image, k, channels int, workers Workers, rng *rand.Rand) (*Convolution, Image) {
	inputs := k * k * in.Channels
	c := &Convolution{
		Weight: newParam(name+".weight", inputs, channels), Bias: newParam(name+".bias", channels),
		in: in, out: Image{in.Height - k + 1, in.Width - k + 1, channels}, k: k, workers: workers,
	}
	for i := range c.Weight.Data {
		c.Weight.Data[i] = float32(rng.NormFloat64() * Cautious(inputs))
	}
	return c, c.out
}

// Params returns the matrix and the bias of each channel.
func (c *Convolution) Params() []*ddp.Param { return []*ddp.Param{c.Weight, c.Bias} }

// Forward returns the output pictures.
func (c *Convolution) Forward(x Matrix) Matrix {
	c.pictures = x.Rows
	places := room(&c.places, x.Rows*c.out.Height*c.out.Width, len(c.Weight.Data)/c.out.Channels)
	c.eachLine(func(picture, pixel, place, n int) {
		copy(places.Data[place:][:n], x.Data[picture*x.Stride+pixel:])
	})
	y := room(&c.y, x.Rows, c.out.Len())
	c.flat = View(y.Data, places.Rows, c.out.Channels)
	for i := range c.flat.Rows {
		copy(c.flat.Data[i*c.flat.Stride:], c.Bias.Data)
	}
	c.workers.mul(c.flat, places, c.weights(c.Weight.Data))
	return y
}

// eachLine calls do for each line of the square at each place: its first number is number pixel of
// the picture and number place of the matrix of places, and it has n.
func (c *Convolution) eachLine(do func(picture, pixel, place, n int)) {
	n := c.k * c.in.Channels
	for p := range c.pictures {
		for i := range c.out.Height {
			for j := range c.out.Width {
				place := ((p*c.out.Height+i)*c.out.Width + j) * c.k * n
				for line := range c.k {
					do(p, ((i+line)*c.in.Width+j)*c.in.Channels, place+line*n, n)
				}
			}
		}
	}
}

func (c *Convolution) weights(data []float32) Matrix {
	return View(data, len(data)/c.out.Channels, c.out.Channels)
}

// Backward adds to the gradients of the matrix and the bias.
func (c *Convolution) Backward(dy Matrix) {
	flat := View(dy.Data, c.flat.Rows, c.out.Channels)
	addRows(c.Bias.Grad, flat)
	c.workers.mulTransA(c.weights(c.Weight.Grad), top(c.places, c.flat.Rows), flat)
}

// InputGradient adds up, for each pixel, the gradients of all places it was under the square of.
func (c *Convolution) InputGradient(dy Matrix) Matrix {
	flat := View(dy.Data, c.flat.Rows, c.out.Channels)
	dPlaces := room(&c.dPlaces, flat.Rows, len(c.Weight.Data)/c.out.Channels)
	clear(dPlaces.Data)
	c.workers.mulTransB(dPlaces, flat, c.weights(c.Weight.Data))
	dx := room(&c.dx, c.pictures, c.in.Len())
	clear(dx.Data)
	c.eachLine(func(picture, pixel, place, n int) {
		to := dx.Data[picture*dx.Stride+pixel:][:n]
		for i, v := range dPlaces.Data[place:][:n] {
			to[i] += v
		}
	})
	return dx
}

// A MaxPool takes of each square of 2 x 2 pixels, in each channel, the largest number. A last line
// or column that fills no square is left out.
type MaxPool struct {
	in, out Image
	from    []int32 // the number of the picture that each output is
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
	at := 0
	for p := range x.Rows {
		picture := x.Data[p*x.Stride:][:x.Cols]
		for i := range m.out.Height {
			for j := range m.out.Width {
				for c := range m.in.Channels {
					m.from[at], y.Data[at] = m.largest(picture, ((2*i)*m.in.Width+2*j)*m.in.Channels+c)
					at++
				}
			}
		}
	}
	return y
}

// largest returns the largest of the square whose first pixel is number first, and its number.
func (m *MaxPool) largest(picture []float32, first int) (int32, float32) {
	from, most := first, float32(math.Inf(-1))
	right, down := m.in.Channels, m.in.Width*m.in.Channels
	for _, at := range [4]int{first, first + right, first + down, first + down + right} {
		if v := picture[at]; v > most {
			from, most = at, v
		}
	}
	return int32(from), most
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
