package network

import (
	"bytes"
	"slices"
	"testing"

	"gompi/internal/boot"
	"gompi/internal/core/path"
)

func TestCardsSurviveTheirTrip(t *testing.T) {
	for _, c := range []Card{
		{},
		{CPUs: CPUs{0xff, 0x01}, Quota: 3, Devices: true, Clock: 1 << 63},
		{Rules: new(path.Rules).Encode(), Transport: []byte("10.0.0.1:4000")},
		{CPUs: make(CPUs, 128), Quota: 65535, Machine: []byte("12345678"), Rules: []byte{0},
			Transport: make([]byte, 500)},
	} {
		got, err := DecodeCard(c.Encode())
		if err != nil || !bytes.Equal(got.CPUs, c.CPUs) || got.Quota != c.Quota || got.Clock != c.Clock ||
			got.Devices != c.Devices || !bytes.Equal(got.Machine, c.Machine) || !bytes.Equal(got.Rules, c.Rules) ||
			!bytes.Equal(got.Transport, c.Transport) {
			t.Errorf("%+v became %+v (%v)", c, got, err)
		}
	}
}

func TestShortCardsAreRefused(t *testing.T) {
	whole := Card{CPUs: CPUs{1}, Rules: []byte{2, 3}}.Encode()
	for n := range len(whole) {
		if _, err := DecodeCard(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
}

func FuzzCard(f *testing.F) {
	f.Add(Card{}.Encode())
	f.Add(Card{CPUs: CPUs{3}, Quota: 2, Machine: []byte("m"), Rules: new(path.Rules).Encode(),
		Transport: []byte("x")}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCard(b)
		if err != nil {
			return
		}
		if !bytes.Equal(c.Encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, c, c.Encode())
		}
		Cards{c}.Loads(&boot.Info{Size: 1, Nodes: 1})
		Cards{c}.Agreed(&boot.Info{Size: 1, Nodes: 1}) // may refuse the table
	})
}

func TestClocksOfHostsAreNotOne(t *testing.T) {
	for _, tt := range []struct {
		clocks []uint64
		want   bool
	}{{[]uint64{0}, true}, {[]uint64{5, 5, 5}, true}, {[]uint64{5, 5, 6}, false}, {[]uint64{0, 0}, false}} {
		var cs Cards
		for _, c := range tt.clocks {
			cs = append(cs, Card{Clock: c})
		}
		if got := cs.OneClock(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.clocks, got, tt.want)
		}
	}
}

func TestLoadIsRanksToAProcessor(t *testing.T) {
	two, other := CPUs{0b11}, CPUs{0b1100}
	here, there := []byte("here"), []byte("there")
	onTwo := &boot.Info{Size: 4, Nodes: 2, NodeOf: []int32{0, 0, 1, 1}}
	for _, tt := range []struct {
		name  string
		cards Cards
		info  *boot.Info
		want  []int
	}{
		{"two on two", Cards{{CPUs: two}, {CPUs: two}}, &boot.Info{Nodes: 1}, []int{1}},
		{"three on two", Cards{{CPUs: two}, {CPUs: two}, {CPUs: two}}, &boot.Info{Nodes: 1}, []int{2}},
		{"shares", Cards{{CPUs: two}, {CPUs: two}, {CPUs: other}}, &boot.Info{Nodes: 1}, []int{1}},
		{"quota of one", Cards{{CPUs: two, Quota: 1}, {CPUs: two, Quota: 1}}, &boot.Info{Nodes: 1}, []int{2}},
		{"nobody knows", Cards{{}, {}}, &boot.Info{Nodes: 1}, []int{1}},
		{"one host of two", Cards{{CPUs: two}, {CPUs: two}, {CPUs: CPUs{1}}, {CPUs: CPUs{1}}}, onTwo, []int{1, 2}},
		{"two hosts that are one machine", Cards{{CPUs: two, Machine: here}, {CPUs: two, Machine: here},
			{CPUs: two, Machine: here}, {CPUs: two, Machine: here}}, onTwo, []int{2, 2}},
		{"its containers, bound", Cards{{CPUs: two, Machine: here}, {CPUs: two, Machine: here},
			{CPUs: other, Machine: here}, {CPUs: other, Machine: here}}, onTwo, []int{1, 1}},
		{"two machines", Cards{{CPUs: two, Machine: here}, {CPUs: two, Machine: here}, {CPUs: two, Machine: there},
			{CPUs: two, Machine: there}}, onTwo, []int{1, 1}},
		{"quota of one container", Cards{{CPUs: two, Quota: 1, Machine: here}, {CPUs: two, Quota: 1, Machine: here},
			{CPUs: other, Machine: here}, {CPUs: other, Machine: here}}, onTwo, []int{2, 1}},
		{"five on two", Cards{{CPUs: two}, {CPUs: two}, {CPUs: two}, {CPUs: two}, {CPUs: two}},
			&boot.Info{Nodes: 1}, []int{3}},
	} {
		got := tt.cards.Loads(tt.info)
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%s: load of host %d: %v, want %v", tt.name, i, got[i], tt.want[i])
			}
		}
		tt.cards[0].Rules = new(path.Rules).Encode()
		if rules, err := tt.cards.Agreed(tt.info); err != nil || rules.Oversubscribed != (slices.Max(tt.want) > 1) {
			t.Errorf("%s: loads of %v, %v, make other rules than oversubscribed ones from 2 on", tt.name, tt.want, err)
		}
	}
}
