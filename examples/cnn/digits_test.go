package main

import (
	"bytes"
	"testing"
)

func TestDigitsFollowFromTheSeed(t *testing.T) {
	a, b, other := makeDigits(300, 1), makeDigits(300, 1), makeDigits(300, 2)
	if !bytes.Equal(a.Pixels, b.Pixels) || !bytes.Equal(a.Labels, b.Labels) {
		t.Error("the same seed makes other digits")
	}
	if bytes.Equal(a.Pixels, other.Pixels) {
		t.Error("another seed makes the same digits")
	}
	var counts [10]int
	for _, l := range a.Labels {
		counts[l]++
	}
	for digit, n := range counts {
		if n < 10 {
			t.Errorf("%d of 300 digits are %d", n, digit)
		}
	}
}

// Every digit differs from every other in the font, and each has ink in its picture.
func TestDigitsDiffer(t *testing.T) {
	for a := range 10 {
		for b := range a {
			same := true
			for i := range lines {
				for j := range columns {
					same = same && point(a, i, j) == point(b, i, j)
				}
			}
			if same {
				t.Errorf("%d looks like %d", a, b)
			}
		}
	}
	s := makeDigits(100, 1)
	if len(s.Pixels) != 100*side*side {
		t.Fatalf("%d pixels", len(s.Pixels))
	}
	for i, l := range s.Labels {
		bright := 0
		for _, v := range s.Pixels[i*side*side:][:side*side] {
			if v > 100 {
				bright++
			}
		}
		if bright < 20 || bright > side*side/2 {
			t.Errorf("picture %d, a %d, has %d bright pixels", i, l, bright)
		}
	}
}
