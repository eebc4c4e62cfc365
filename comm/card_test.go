package comm

import (
	"bytes"
	"testing"

	"gompi/comm/internal/path"
	"gompi/internal/boot"
)

func TestCardsSurviveTheirTrip(t *testing.T) {
	for _, c := range []card{
		{},
		{cpus: cpuset{0xff, 0x01}, quota: 3, devices: true},
		{table: new(path.Rules).Encode(), transport: []byte("10.0.0.1:4000")},
		{cpus: make(cpuset, 128), quota: 65535, machine: []byte("12345678"), table: []byte{0}, transport: make([]byte, 500)},
	} {
		got, err := decodeCard(c.encode())
		if err != nil || !bytes.Equal(got.cpus, c.cpus) || got.quota != c.quota || got.devices != c.devices || !bytes.Equal(got.machine, c.machine) || !bytes.Equal(got.table, c.table) || !bytes.Equal(got.transport, c.transport) {
			t.Errorf("%+v became %+v (%v)", c, got, err)
		}
	}
}

func TestShortCardsAreRefused(t *testing.T) {
	whole := card{cpus: cpuset{1}, table: []byte{2, 3}}.encode()
	for n := range len(whole) {
		if _, err := decodeCard(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
}

func FuzzCard(f *testing.F) {
	f.Add(card{}.encode())
	f.Add(card{cpus: cpuset{3}, quota: 2, machine: []byte("m"), table: new(path.Rules).Encode(), transport: []byte("x")}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCard(b)
		if err != nil {
			return
		}
		if !bytes.Equal(c.encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, c, c.encode())
		}
		cards{c}.loads(&boot.Info{Size: 1, Nodes: 1})
		cards{c}.agreed(&boot.Info{Size: 1, Nodes: 1}) // may refuse the table
	})
}

func TestLoadIsRanksToAProcessor(t *testing.T) {
	two, other := cpuset{0b11}, cpuset{0b1100}
	here, there := []byte("here"), []byte("there")
	onTwo := &boot.Info{Size: 4, Nodes: 2, NodeOf: []int32{0, 0, 1, 1}}
	for _, tt := range []struct {
		name  string
		cards cards
		info  *boot.Info
		want  []int
	}{
		{"two on two", cards{{cpus: two}, {cpus: two}}, &boot.Info{Nodes: 1}, []int{1}},
		{"three on two", cards{{cpus: two}, {cpus: two}, {cpus: two}}, &boot.Info{Nodes: 1}, []int{2}},
		{"shares", cards{{cpus: two}, {cpus: two}, {cpus: other}}, &boot.Info{Nodes: 1}, []int{1}},
		{"quota of one", cards{{cpus: two, quota: 1}, {cpus: two, quota: 1}}, &boot.Info{Nodes: 1}, []int{2}},
		{"nobody knows", cards{{}, {}}, &boot.Info{Nodes: 1}, []int{1}},
		{"one host of two", cards{{cpus: two}, {cpus: two}, {cpus: cpuset{1}}, {cpus: cpuset{1}}}, onTwo, []int{1, 2}},
		{"two hosts that are one machine", cards{{cpus: two, machine: here}, {cpus: two, machine: here}, {cpus: two, machine: here}, {cpus: two, machine: here}}, onTwo, []int{2, 2}},
		{"its containers, bound", cards{{cpus: two, machine: here}, {cpus: two, machine: here}, {cpus: other, machine: here}, {cpus: other, machine: here}}, onTwo, []int{1, 1}},
		{"two machines", cards{{cpus: two, machine: here}, {cpus: two, machine: here}, {cpus: two, machine: there}, {cpus: two, machine: there}}, onTwo, []int{1, 1}},
		{"quota of one container", cards{{cpus: two, quota: 1, machine: here}, {cpus: two, quota: 1, machine: here}, {cpus: other, machine: here}, {cpus: other, machine: here}}, onTwo, []int{2, 1}},
		{"five on two", cards{{cpus: two}, {cpus: two}, {cpus: two}, {cpus: two}, {cpus: two}}, &boot.Info{Nodes: 1}, []int{3}},
	} {
		got := tt.cards.loads(tt.info)
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%s: load of host %d: %v, want %v", tt.name, i, got[i], tt.want[i])
			}
		}
	}
}
