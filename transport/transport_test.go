package transport

import (
	"errors"
	"testing"
)

func TestHeaderRoundTrip(t *testing.T) {
	for k := NoKind + 1; k < numKinds; k++ {
		h := Header{Kind: k, Flags: 0x81, Tag: -1 << 31, Comm: 1<<64 - 1, Seq: 1 << 63, Len: MaxPayload, A: 7,
			B: 1<<64 - 2}
		var b [HeaderSize]byte
		h.Encode(b[:])
		var got Header
		if err := got.Decode(b[:]); err != nil || got != h {
			t.Errorf("%+v reads as %+v, %v", h, got, err)
		}
	}
}

func TestDecodeRefusesHeadersThatNoRankSends(t *testing.T) {
	var good [HeaderSize]byte
	(&Header{Kind: Eager, Len: 10}).Encode(good[:])
	for name, change := range map[string]func(b *[HeaderSize]byte){
		"another start":   func(b *[HeaderSize]byte) { b[0]++ },
		"another version": func(b *[HeaderSize]byte) { b[1]++ },
		"no kind":         func(b *[HeaderSize]byte) { b[2] = 0 },
		"unknown kind":    func(b *[HeaderSize]byte) { b[2] = byte(numKinds) },
		"negative length": func(b *[HeaderSize]byte) { b[31] = 0x80 },
		"huge length":     func(b *[HeaderSize]byte) { b[30] = 2 },
	} {
		b := good
		change(&b)
		var h Header
		if err := h.Decode(b[:]); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: Decode says %v, want %v", name, err, ErrProtocol)
		}
	}
}

func TestEveryKindHasAName(t *testing.T) {
	seen := make(map[string]Kind)
	for k := NoKind; k < numKinds; k++ {
		if other, ok := seen[k.String()]; ok || k.String() == "" {
			t.Errorf("kinds %d and %d are both %q", other, k, k)
		}
		seen[k.String()] = k
	}
	if got := Kind(200).String(); got != "kind(200)" {
		t.Errorf("Kind(200).String() = %q", got)
	}
}

func FuzzHeader(f *testing.F) {
	var b [HeaderSize]byte
	(&Header{Kind: Coll, Tag: -1, Comm: 3, Len: 1 << 40}).Encode(b[:])
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderSize {
			return
		}
		var h Header
		if h.Decode(b) != nil {
			return
		}
		if h.Len < 0 || h.Len > MaxPayload {
			t.Fatalf("Decode let %d bytes through", h.Len)
		}
		var again [HeaderSize]byte
		h.Encode(again[:])
		if string(again[:]) != string(b[:HeaderSize]) {
			t.Errorf("% x reads as %+v, which writes as % x", b[:HeaderSize], h, again)
		}
	})
}
