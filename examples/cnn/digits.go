package main

import (
	"math"
	"math/rand/v2"
	"strings"
)

// side is the height and width of a picture: MNIST's.
const side = 28

// font has the digits, of 7 lines of 5 points.
var font = strings.Fields(`
	.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
	#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
	#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
	#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
	##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#
	#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ...#.
	.###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .##..`)

const lines, columns = 7, 5

// point returns 1 where the digit has a point, and 0 outside.
func point(digit, line, column int) float64 {
	if line < 0 || line >= lines || column < 0 || column >= columns || font[line*10+digit][column] != '#' {
		return 0
	}
	return 1
}

// makeDigits returns n made-up pictures, which depend on seed alone: digits of a bitmap font,
// varied in place, size and slope, with noise.
func makeDigits(n int, seed uint64) *digits {
	rng := rand.New(rand.NewPCG(seed, 0x646967697473))
	s := &digits{Height: side, Width: side, Pixels: make([]byte, 0, n*side*side)}
	for range n {
		digit := rng.IntN(10)
		s.Labels = append(s.Labels, byte(digit))
		s.Pixels = appendPicture(s.Pixels, digit, rng)
	}
	return s
}

// appendPicture draws a digit: for each pixel it computes the place in the font.
func appendPicture(pixels []byte, digit int, rng *rand.Rand) []byte {
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*rng.Float64() }
	height, width := between(1.7, 3.2), between(1.9, 3.8) // pixels of a point of the font
	slope, turn := between(-0.3, 0.3), between(-0.2, 0.2)
	down, right := between(-4, 4), between(-4, 4)
	ink, noise := between(150, 255), between(5, 45)
	sin, cos := math.Sincos(turn)
	for i := range side {
		for j := range side {
			y, x := float64(i)-(side-1)/2.0-down, float64(j)-(side-1)/2.0-right
			y, x = y*cos-x*sin, y*sin+x*cos
			x += slope * y
			v := ink*smooth(digit, y/height+(lines-1)/2.0, x/width+(columns-1)/2.0) + noise*rng.NormFloat64()
			pixels = append(pixels, byte(max(0, min(255, v))))
		}
	}
	return pixels
}

// smooth interpolates the digit between four points of the font.
func smooth(digit int, y, x float64) float64 {
	i, j := math.Floor(y), math.Floor(x)
	dy, dx := y-i, x-j
	at := func(down, right int) float64 { return point(digit, int(i)+down, int(j)+right) }
	return (1-dy)*((1-dx)*at(0, 0)+dx*at(0, 1)) + dy*((1-dx)*at(1, 0)+dx*at(1, 1))
}
