package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"gompi/internal/world"
)

func examples() []Message {
	return []Message{
		&Attach{Local: 7},
		&Card{Data: []byte("card")},
		&Card{Data: []byte{}},
		&Revoke{Comm: math.MaxUint64, Cause: []byte("cause")},
		&Abort{Code: -3, Reason: "no disk"},
		&Welcome{
			Rank: 5, Size: 1 << 20, LocalRank: 1, LocalSize: 64, Node: 3, JobID: "id", Secret: [32]byte{1, 31: 2},
			Placement: []Run{{0, 4}, {3, 2}, {0, 1}}, Hosts: []string{"a", "", "c"}, Watch: true, Recover: true,
			Spares: 2, Invited: true, Invite: Invite{Comm: 9, Seq: 1, Members: []Span{{3, 1}, {0, 2}}},
		},
		&Welcome{Size: 1, LocalSize: 1, SegmentSocket: "@00a1b"},
		&Cards{Data: [][]byte{{1}, {}, []byte(strings.Repeat("x", MaxCard))}},
		&Died{Rank: 9, Text: "was killed"},
		&Revoked{Rank: 1, Comm: 3, Cause: []byte{0}},
		&Terminate{Text: "the end"},
		&Join{Host: "node7", Machine: "id", SegmentSocket: "@00a1b"},
		&Leave{},
		&Inquire{Rank: 6},
		&Left{Rank: 6},
		&Detached{Rank: 6},
		&Vote{Comm: 1 << 63, Seq: 2, Kind: Shrink, Flags: math.MaxUint64, Members: []Span{{0, 3}, {7, 1}},
			Part: []byte("part")},
		&Outcome{Comm: 1, Seq: 2, Flags: 6, Living: []Voter{{3, []byte("part")}, {4, []byte{}}},
			Dead: []world.Rank{1, 5}, Differ: "x"},
		&Outcome{Dead: []world.Rank{1}, Replaced: []Replacement{{1, 8, []byte("card")}}, Failed: "y"},
		&Closing{},
		&Describe{},
		&Stacks{Text: []byte("goroutine 1 [running]:")},
	}
}

// split takes a stream apart that is read in pieces of n bytes, or, if n is 0,
// as exact reading wants it.
func split(t *testing.T, f *Frames, stream []byte, n int) []Message {
	t.Helper()
	var got []Message
	for len(stream) > 0 {
		next := stream
		if n > 0 {
			next = stream[:min(n, len(stream))]
		}
		k := copy(f.ReadBuffer(n == 0), next)
		f.Filled(k)
		stream = stream[k:]
		for {
			kind, body, ok, err := f.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			m, err := protocol.Parse(kind, bytes.Clone(body))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
	}
	return got
}

func TestMessagesSurviveAnySplitting(t *testing.T) {
	var stream []byte
	for _, m := range examples() {
		stream = Append(stream, m)
	}
	for _, n := range []int{0, 1, 3, 4, 5, 1000, len(stream)} { // 0: as much as ReadBuffer(true) takes
		f := Frames{Limit: MaxDown}
		if got := split(t, &f, stream, n); !reflect.DeepEqual(got, examples()) {
			t.Errorf("in pieces of %d: %d messages differ", n, len(got))
		}
		if f.Partial() {
			t.Errorf("in pieces of %d: something is left", n)
		}
	}
}

func TestExactRoomEndsWithTheFrame(t *testing.T) {
	stream := Append(nil, &Died{Rank: 1, Text: "x"})
	first := len(stream)
	stream = Append(stream, &Terminate{Text: "y"})
	f := Frames{Limit: MaxDown}
	read := 0
	for {
		if _, _, ok, err := f.Next(); ok || err != nil {
			break
		}
		k := copy(f.ReadBuffer(true), stream[read:])
		f.Filled(k)
		read += k
	}
	if read != first {
		t.Errorf("read %d bytes for a frame of %d", read, first)
	}
}

func TestFramesRefusesLengthsBeyondTheLimit(t *testing.T) {
	for _, head := range [][]byte{{0, 0, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 1}, {102, 0, 0, 0, 1}} {
		f := Frames{Limit: 100}
		copy(f.ReadBuffer(false), head)
		f.Filled(len(head))
		if _, _, ok, err := f.Next(); ok || !errors.Is(err, ErrFrame) {
			t.Errorf("head %v: ok %v, error %v; want %v", head, ok, err, ErrFrame)
		}
	}
}

func TestFramesTakesMemoryOnlyForWhatArrives(t *testing.T) {
	f := Frames{Limit: math.MaxInt32}
	copy(f.ReadBuffer(false), []byte{0, 0, 0, 0x40, 1}) // 1 GiB
	f.Filled(5)
	f.Next()
	if n := len(f.ReadBuffer(false)); n > 2*pieceRoom {
		t.Errorf("room of %d bytes after 5 of a long frame", n)
	}
}

// manyMembers has spans that are small enough each, but not all together.
var manyMembers = &Vote{Members: []Span{{0, MaxRanks / 2}, {1, MaxRanks/2 + 1}}}

func TestParseRefusesFramesThatNoRankSends(t *testing.T) {
	kind := func(m Message) byte { return Append(nil, m)[4] }
	body := func(m Message) []byte { return Append(nil, m)[headSize:] }
	tests := []struct {
		name string
		kind byte
		body []byte
	}{
		{"unknown kind", 200, nil},
		{"no kind", 0, nil},
		{"empty", kind(&Died{}), nil},
		{"rank below 0", kind(&Died{}), body(&Died{Rank: -1, Text: "x"})},
		{"text cut short", kind(&Terminate{}), []byte{5, 'a'}},
		{"text too long", kind(&Terminate{}), append(binary.AppendUvarint(nil, MaxText+1), make([]byte, MaxText+1)...)},
		{"bytes left", kind(&Attach{}), []byte{2, 0}},
		{"card too long", kind(&Card{}), body(&Card{Data: make([]byte, MaxCard+1)})},
		{"more cards than bytes", kind(&Cards{}), body(&Attach{Local: 1000})},
		{"number without end", kind(&Attach{}), bytes.Repeat([]byte{0xff}, 20)},
		{"no truth value", kind(&Welcome{}), append(body(&Welcome{})[:5+1+32+2], 2, 0)},
		{"too many members in all", kind(&Vote{}), body(manyMembers)},
		{"welcome without secret", kind(&Welcome{}), []byte{0, 2, 0, 2, 0, 0, 1, 2, 3}},
	}
	for _, tt := range tests {
		if m, err := protocol.Parse(tt.kind, tt.body); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: parsed %+v, error %v; want %v", tt.name, m, err, ErrFrame)
		}
	}
}

func TestParseTakesOneWholeFrame(t *testing.T) {
	for _, want := range examples() {
		frame := Append(nil, want)
		if got, err := Parse(frame); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsed %+v, error %v; want %+v", got, err, want)
		}
		for _, bad := range [][]byte{nil, frame[:len(frame)-1], append(frame, 0), append(frame, frame...)} {
			if m, err := Parse(bad); !errors.Is(err, ErrFrame) {
				t.Errorf("%T in %d bytes instead of %d: parsed %+v, error %v; want %v", want, len(bad), len(frame), m,
					err, ErrFrame)
			}
		}
	}
}

// A text that is too long is cut where it is written, and can be read.
func TestProseIsCutToTheLimit(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"short", "short"},
		{strings.Repeat("x", MaxText), strings.Repeat("x", MaxText)},
		{strings.Repeat("x", MaxText+1), strings.Repeat("x", MaxText-len(cutMark)) + cutMark},
		{strings.Repeat("é", MaxText), strings.Repeat("é", (MaxText-len(cutMark))/2) + cutMark},
	} {
		got := split(t, &Frames{Limit: 1 << 20}, Append(nil, &Terminate{Text: tt.text}), 1<<20)
		if len(got) != 1 || got[0].(*Terminate).Text != tt.want {
			t.Errorf("%d bytes of text are read as %.100v, want %d bytes", len(tt.text), got, len(tt.want))
		}
	}
}

func TestRunsFoldsNeighbours(t *testing.T) {
	tests := []struct {
		nodes []int
		want  []Run
	}{
		{nil, nil},
		{[]int{0}, []Run{{0, 1}}},
		{[]int{0, 0, 1, 1, 1}, []Run{{0, 2}, {1, 3}}},
		{[]int{0, 1, 0, 1}, []Run{{0, 1}, {1, 1}, {0, 1}, {1, 1}}},
	}
	for _, tt := range tests {
		if got := Runs(tt.nodes); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Runs(%v) = %v, want %v", tt.nodes, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range append(examples(), manyMembers) {
		frame := Append(nil, m)
		f.Add(frame[4], frame[headSize:])
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		m, err := protocol.Parse(kind, body)
		if err != nil {
			return
		}
		frame := Append(nil, m)
		again, err := protocol.Parse(frame[4], frame[headSize:])
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(Append(nil, &Died{Rank: 1, Text: "x"}), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		whole, pieces := Frames{Limit: 64}, Frames{Limit: 64}
		count := func(fr *Frames, n int) (bodies [][]byte, failed bool) {
			for rest := stream; len(rest) > 0; {
				k := copy(fr.ReadBuffer(false), rest[:min(n, len(rest))])
				fr.Filled(k)
				rest = rest[k:]
				for {
					_, body, ok, err := fr.Next()
					if err != nil {
						return bodies, true
					}
					if !ok {
						break
					}
					bodies = append(bodies, bytes.Clone(body))
				}
			}
			return bodies, false
		}
		a, aFailed := count(&whole, len(stream))
		b, bFailed := count(&pieces, int(n)+1)
		if aFailed != bFailed || !reflect.DeepEqual(a, b) {
			t.Fatalf("whole: %d frames, failed %v; in pieces: %d, %v", len(a), aFailed, len(b), bFailed)
		}
	})
}
