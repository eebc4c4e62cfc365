package seg

import "testing"

func TestPlacesAreFoundAgain(t *testing.T) {
	arena := make([]byte, 3*pageSize)
	heap := arena[pageSize : 2*pageSize]
	for _, tt := range []struct {
		name   string
		b      []byte
		shared bool
	}{
		{"the beginning", heap[:10], true},
		{"the end", heap[pageSize-10:], true},
		{"all", heap, true},
		{"before", arena[pageSize-10 : pageSize], false},
		{"across the beginning", arena[pageSize-10 : pageSize+10], false},
		{"across the end", arena[2*pageSize-10 : 2*pageSize+10], false},
		{"behind", arena[2*pageSize : 2*pageSize+10], false},
	} {
		p := Locate(heap, tt.b)
		switch {
		case (p != NotShared) != tt.shared || p == Nowhere:
			t.Errorf("%s: place %d, want shared %v", tt.name, p, tt.shared)
		case tt.shared && &p.At(heap, 3, 4)[0] != &tt.b[3]:
			t.Errorf("%s: another element from 3 on", tt.name)
		}
	}
	if p := Locate(heap, nil); p != Nowhere {
		t.Errorf("nothing lies at %d", p)
	}
}
