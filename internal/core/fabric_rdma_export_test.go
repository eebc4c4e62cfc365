package core

import (
	"bytes"
	"errors"
	"fmt"
)

// Lacking is lacking for ranks on some fabrics, after their cards have been encoded and decoded.
func Lacking(fabrics [][]string) (rank int, err error) {
	cards := make([]rdmaCard, len(fabrics))
	for r, f := range fabrics {
		own := rdmaCard{address: []byte{byte(r)}, fabrics: f}
		b := own.append(nil)
		for short := range b {
			if _, err := new(rdmaCard).cut(b[:short]); err == nil {
				return short, errors.New("a card that was cut off is taken")
			}
		}
		if rest, err := cards[r].cut(append(b, 7)); err != nil || !bytes.Equal(rest, []byte{7}) || !bytes.Equal(cards[r].address, own.address) {
			return r, fmt.Errorf("card %q, %v, and after it %v", cards[r].address, err, rest)
		}
	}
	return lacking(cards)
}
