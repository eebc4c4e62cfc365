package nn

import (
	"math/rand/v2"

	"gompi/comm/ddp"
)

// An Image is the shape of pictures: a row of a batch has the pixels of a picture line by line, and
// for each pixel its channels.
type Image struct{ Height, Width, Channels int }

// Len returns the number of values in a picture.
func (s Image) Len() int { return s.Height * s.Width * s.Channels }

// A Convolution moves a square of k x k pixels over a picture, without padding. At each place the
// pixels under the square, times a matrix, give a pixel of the output.
//
// For each line of the output the k lines under the square are copied into a strip, column by
// column. From place to place the square moves over a strip by a column, and the numbers under it
// are contiguous. With squares of 2 x 2 and one channel:
//
//	a b c d    strip of the first line:   a e b f c g d h
//	e f g h    under the first square:    a e b f
//	i j k l    under the second:              b f c g
//
// A copy of the pixels under each square (im2col) would be k times as large. The computation only
// adds multiples of rows to rows: forward, rows of up to k times the channels of the output;
// backward, rows of all numbers under a square. Zero gradients, most of all behind a MaxPool, cost
// nothing.
type Convolution struct {
	Weight, Bias *ddp.Param // Weight has a row for each channel of the output, in the order of strips
	in, out      Image
	k            int
	column       int // numbers in a column of a strip
	workers      Workers

	strips Matrix // a row for each line of each picture of the output
	y, dx  Matrix
}

// NewConvolution returns a Convolution with Cautious weights, and the shape of its output.
func NewConvolution(name string, in Image, k, channels int, workers Workers, rng *rand.Rand) (*Convolution, Image) {
	inputs := k * k * in.Channels
	c := &Convolution{
		Weight: newParam(name+".weight", channels, inputs), Bias: newParam(name+".bias", channels),
		in: in, out: Image{in.Height - k + 1, in.Width - k + 1, channels}, k: k, column: k * in.Channels,
		workers: workers,
	}
	for i := range c.Weight.Data {
		c.Weight.Data[i] = float32(rng.NormFloat64() * Cautious(inputs))
	}
	return c, c.out
}

// Params returns the matrix and the bias of each channel.
func (c *Convolution) Params() []*ddp.Param { return []*ddp.Param{c.Weight, c.Bias} }

func (c *Convolution) weights(data []float32) Matrix {
	return View(data, c.out.Channels, c.k*c.column)
}

// lines returns pictures of the output as a matrix with a row for each line.
func (c *Convolution) lines(y Matrix) Matrix {
	return View(y.Data, y.Rows*c.out.Height, c.out.Width*c.out.Channels)
}

// Forward returns the output pictures.
func (c *Convolution) Forward(x Matrix) Matrix {
	y := room(&c.y, x.Rows, c.out.Len())
	strips := room(&c.strips, x.Rows*c.out.Height, c.in.Width*c.column)
	lines, w := c.lines(y), c.byInput()
	c.workers.each(x.Rows, 1, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			first, last := p*c.out.Height, (p+1)*c.out.Height
			for i := first; i < last; i++ {
				c.eachPixel(row(x, p), i-first, row(strips, i), func(pixel, copied []float32) {
					//lint:ignore S1001 few channels: copy would take longer
					for channel, v := range pixel {
						copied[channel] = v
					}
				})
			}
			c.forward(rows(lines, first, last), rows(strips, first, last), w)
		}
	})
	return y
}

// eachPixel calls do for each pixel of the strip of line i, with its channels in the picture and in
// the strip.
func (c *Convolution) eachPixel(picture []float32, i int, strip []float32, do func(pixel, copied []float32)) {
	n := c.in.Channels
	for j := range c.in.Width {
		for line := i; line < i+c.k; line++ {
			do(picture[(line*c.in.Width+j)*n:][:n], strip[:n])
			strip = strip[n:]
		}
	}
}

// byInput returns the weights with a row for each number of a column of a strip. A row has the
// outputs' weights for all places where the column is under the square, from left to right. At the
// first of these places the column is the last of the square.
func (c *Convolution) byInput() Matrix {
	n, w := c.out.Channels, c.weights(c.Weight.Data)
	turned := NewMatrix(c.column, c.k*n)
	for channel := range n {
		for j := range c.k {
			for i, v := range row(w, channel)[j*c.column:][:c.column] {
				row(turned, i)[(c.k-1-j)*n+channel] = v
			}
		}
	}
	return turned
}

// forward computes the lines of a picture from their strips and the weights by input.
func (c *Convolution) forward(y, strips, w Matrix) {
	n := c.out.Channels
	for i := range y.Rows {
		for j := range c.out.Width {
			copy(row(y, i)[j*n:], c.Bias.Data)
		}
	}
	for j := range c.in.Width {
		first := j - c.k + 1 // the first place where column j is under the square; < 0: none
		lo, hi := max(0, first), min(j+1, c.out.Width)
		mul(columns(y, lo*n, hi*n), columns(strips, j*c.column, (j+1)*c.column), columns(w, (lo-first)*n, (hi-first)*n))
	}
}

// Backward adds to the gradients of the matrix and the bias. Each worker computes some columns of
// the matrix, for all pictures.
func (c *Convolution) Backward(dy Matrix) {
	addRows(c.Bias.Grad, View(dy.Data, dy.Rows*c.out.Height*c.out.Width, c.out.Channels))
	lines, dw := c.lines(dy), c.weights(c.Weight.Grad)
	c.workers.each(dw.Cols, 16, func(lo, hi int) {
		at := make([]int, c.out.Channels)
		for i := range lines.Rows {
			c.eachGradient(row(lines, i), row(c.strips, i), at, func(channel int, g float32, under []float32) {
				addTimes(row(dw, channel)[lo:hi], g, under[lo:hi])
			})
		}
	})
}

// eachGradient calls do for each number of a line of the output with a nonzero gradient, with its
// channel, the gradient and the numbers under the square in strip.
func (c *Convolution) eachGradient(dy, strip []float32, at []int, do func(channel int, g float32, under []float32)) {
	for j := range c.out.Width {
		pixel := dy[j*c.out.Channels:][:c.out.Channels]
		for _, channel := range nonZero(at, pixel) {
			do(channel, pixel[channel], strip[j*c.column:][:c.k*c.column])
		}
	}
}

// InputGradient adds up, for each pixel, the gradients of all places whose square covers the pixel.
func (c *Convolution) InputGradient(dy Matrix) Matrix {
	dx := room(&c.dx, dy.Rows, c.in.Len())
	clear(dx.Data)
	lines, w := c.lines(dy), c.weights(c.Weight.Data)
	c.workers.each(dy.Rows, 1, func(lo, hi int) {
		at, strip := make([]int, c.out.Channels), make([]float32, c.in.Width*c.column)
		for p := lo; p < hi; p++ {
			for i := range c.out.Height {
				clear(strip)
				c.eachGradient(row(lines, p*c.out.Height+i), strip, at, func(channel int, g float32, under []float32) {
					addTimes(under, g, row(w, channel))
				})
				c.eachPixel(row(dx, p), i, strip, func(pixel, copied []float32) {
					for channel, g := range copied {
						pixel[channel] += g
					}
				})
			}
		}
	})
	return dx
}
