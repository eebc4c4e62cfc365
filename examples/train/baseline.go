package main

import (
	"compress/flate"
	"math"
)

// unigramLoss returns the bits per byte of text if every byte is coded by its frequency in this
// text: the best result without context.
func unigramLoss(text []byte) float64 {
	var count [256]int
	for _, b := range text {
		count[b]++
	}
	var bits float64
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// flateLoss returns the bits per byte of text with compress/flate at its best level.
func flateLoss(text []byte) float64 {
	var size byteCounter
	w, err := flate.NewWriter(&size, flate.BestCompression)
	if err != nil {
		return math.NaN() // no such level: cannot happen
	}
	w.Write(text)
	w.Close()
	return 8 * float64(size) / float64(len(text))
}

// A byteCounter is a Writer that only counts.
type byteCounter int

func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
