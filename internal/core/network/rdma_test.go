package network

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Ranks whose ports are on different fabrics do not reach each other: they use TCP.
func TestRanksWithoutACommonFabricUseTCP(t *testing.T) {
	const ib, other, roce = "InfiniBand fe80:0000:0000:0000", "InfiniBand fe80:0000:0000:0007", "RoCE"
	for _, test := range []struct {
		fabrics [][]string
		rank    int
	}{
		{[][]string{{ib}, {ib, roce}, {ib}}, -1},
		{[][]string{nil, nil}, -1},
		{[][]string{{ib}, {ib}, {other}}, 2},
		{[][]string{{ib, roce}, {roce}, {ib}}, 2},
		{[][]string{nil, {roce}, nil, {roce, ib}}, -1}, // not all know theirs
		{[][]string{{roce}, nil, {ib}}, 2},
	} {
		rank, err := lackingOf(test.fabrics)
		if rank != test.rank || (err != nil) != (rank >= 0) {
			t.Errorf("%q: rank %d, %v; want %d", test.fabrics, rank, err, test.rank)
		}
		if err != nil && !strings.Contains(err.Error(), test.fabrics[0][len(test.fabrics[0])-1]) {
			t.Errorf("%q: %v", test.fabrics, err)
		}
	}
}

// lackingOf is lacking for ranks on some fabrics, after their cards have been encoded and decoded.
func lackingOf(fabrics [][]string) (rank int, err error) {
	cards := make([]rdmaCard, len(fabrics))
	for r, f := range fabrics {
		own := rdmaCard{address: []byte{byte(r)}, fabrics: f}
		b := own.encode()
		for short := range b {
			if err := new(rdmaCard).decode(b[:short]); err == nil {
				return short, errors.New("a card that was cut off is taken")
			}
		}
		if err := cards[r].decode(b); err != nil || !bytes.Equal(cards[r].address, own.address) {
			return r, fmt.Errorf("card %q, %v", cards[r].address, err)
		}
	}
	return lacking(cards)
}
